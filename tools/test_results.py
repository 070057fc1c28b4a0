"""python3 -m unittest tools/test_results.py: tests the checks of tools/results.py."""
import json, pathlib, sys, tempfile, unittest, unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import alternate, results

CASE = {"command": "tools/bench_translate.py", "case": "base-int8-4-32", "ctranslate2_tokens_per_s": 1000, "regard_tokens_per_s": 1850.5,
        "speed_ratio": 1.8505, "ctranslate2_peak_mb": 900, "regard_peak_mb": 300, "machine": "a CPU", "rounds": 3}
STEPS = [{"command": "regard bench train --preset tiny", "peer": "regard", "preset": "tiny", "precision": "f32", "step_ms": ms} for ms in (3.0, 9.0, 4.0)]


def stored(*lines):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "m.jsonl")
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return results.load(path.parent)


class Results(unittest.TestCase):
    def test_the_last_line_counts_and_single_runs_have_a_median(self):
        found = stored(CASE, CASE | {"speed_ratio": 2.0}, *STEPS)["m"]
        self.assertEqual(found["decode/base-int8-4-32"]["speed_ratio"], 2.0)
        self.assertEqual((found["step/tiny-f32"]["step_ms"], found["step/tiny-f32"]["rounds"]), (4.0, 3))

    def test_a_newer_date_replaces_earlier_runs(self):
        found = stored(*STEPS, STEPS[0] | {"step_ms": 2.0, "date": "2026-11-17"})["m"]
        self.assertEqual(found["step/tiny-f32"]["step_ms"], 2.0)

    def test_a_table_is_written_and_a_changed_one_is_found(self):
        empty = "# A\n\n<!-- table: decode m -->\n<!-- end of table -->\n\nB\n"
        written, faults, named = results.rewrite(empty, stored(CASE))
        self.assertIn("| base, int8, 4, 32 | 1,000 | 1,851 | **1.85×** | 900 | 300 |", written)
        self.assertIn("<sub>a CPU, 3 rounds: `tools/bench_translate.py`</sub>", written)
        self.assertEqual((len(faults), named), (1, 1))
        self.assertEqual(results.rewrite(written, stored(CASE)), (written, [], 1))
        self.assertTrue(results.rewrite(written.replace("1,851", "1,852"), stored(CASE))[1])

    def test_the_overview_marks_only_what_is_not_measured(self):
        trained = [{"command": "tools/bench_train.py", "preset": p, "torch_tokens_per_s": 1, "speed_ratio": 2.0} for p in ("tiny", "small", "base")]
        decoded = [CASE | {"case": case} for case in ("base-int8-4-32", "base-int8-1-32", "base-f32-4-32", "base-int8-4-1")]
        firefox = {"id": "firefox/flores/one-thread", "command": "tools/bench_firefox.py", "ratio": 2.3}
        with unittest.mock.patch.dict(results.MACHINES, {"m": "M"}):
            self.assertTrue(results.overview(stored(*trained, *decoded, firefox), "m")[-1].endswith("| 2.30× |"))
            self.assertTrue(results.overview(stored(*trained, *decoded), "m")[-1].endswith("| – |"))
            with self.assertRaises(results.Fault):
                results.overview(stored(*trained), "m")

    def test_a_footer_has_the_generation_and_counts_rounds(self):
        said = {("zen4-avx2", "AMD EPYC"): "AMD EPYC (Zen 4)",
                ("zen4-avx2", "AMD EPYC (Zen 4), 2 threads"): "AMD EPYC (Zen 4), 2 threads",
                ("xeon-avx512-vnni-bf16", "Intel(R) Xeon(R) Processor, 2 threads"): "Intel(R) Xeon(R) Processor (Sapphire Rapids), 2 threads",
                ("xeon-avx512-vnni", "Intel(R) Xeon(R) Processor (two cores)"): "Intel(R) Xeon(R) Processor (Emerald Rapids, two cores)",
                ("xeon-avx512-vnni-bf16", "Xeon, AVX-512"): "Xeon (Sapphire Rapids), AVX-512",
                ("other", "AMD EPYC"): "AMD EPYC"}
        for (file, machine), full in said.items():
            self.assertEqual(results.machine_name(file, machine), full)
        self.assertEqual(results.sources([CASE | {"rounds": 1}])[1], "<sub>a CPU, 1 round: `tools/bench_translate.py`</sub>")

    def test_a_sentence_must_quote_its_results(self):
        text = "It is 1.85 times\nas fast.\n<!-- result: m decode/base-int8-4-32 speed_ratio:.2f -->\n"
        self.assertEqual(results.rewrite(text, stored(CASE))[1], [])
        for wrong in ("1.8", "11.85", "1.851", "1.95"):
            self.assertEqual(len(results.rewrite(text.replace("1.85", wrong), stored(CASE))[1]), 1, wrong)
        text = "It is 1.85 times as fast.\n<!-- result: m decode/base-int8-4-32 with_loading:.2f -->\n"
        self.assertEqual(results.rewrite(text, stored(CASE | {"with loading": 1.85}))[1], [])
        text = "```\nfaster: 1.85\n\nmore\n```\n<!-- result: m decode/base-int8-4-32 speed_ratio:.2f -->\n"
        self.assertEqual(results.rewrite(text, stored(CASE))[1], [])
        self.assertEqual(len(results.rewrite(text.replace("1.85", "1.86"), stored(CASE))[1]), 1)
        for other in ("nothing/there speed_ratio", "decode/base-int8-4-32 slowness", "decode/base-int8-4-32"):
            text = f"1.85\n<!-- result: m {other} -->\n"
            self.assertEqual(len(results.rewrite(text, stored(CASE))[1]), 1, other)

    def test_what_a_script_appends_can_be_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path, words = pathlib.Path(folder, "m.jsonl"), sys.argv
            try:
                sys.argv = ["/somewhere/tools/bench_translate.py", "--append", str(path), "/data/model", "--rounds", "3"]
                row = {key: CASE[key] for key in CASE if key not in ("command", "machine", "rounds")}
                alternate.append(path, [row], 3, {"CTranslate2": "4.8.4"}, "a CPU")
                alternate.append(None, [row], 3, {})
            finally:
                sys.argv = words
            found = results.load(path.parent)["m"]["decode/base-int8-4-32"]
        self.assertEqual(found["command"], "tools/bench_translate.py model --rounds 3")
        self.assertEqual((found["versions"], found["rounds"], found["machine"]), ({"CTranslate2": "4.8.4"}, 3, "a CPU"))
        self.assertRegex(found["date"], r"^\d{4}-\d\d-\d\d$")

    def test_a_line_without_a_name_or_command_is_refused(self):
        for line in ({"command": "x", "value": 1}, {"id": "x"}):
            with self.assertRaises(results.Fault):
                stored(line)


if __name__ == "__main__":
    unittest.main()
