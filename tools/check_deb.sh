#!/usr/bin/env bash
# Installs the .deb of `tools/release.sh` and starts its service under a systemd of its own, without a change to this machine:
#
#     sudo tools/check_deb.sh DEB MODEL      MODEL: a model folder, as `regard quickstart` makes it
#
# In new namespaces (mounts, processes, network), over a copy-on-write view of this machine's file system, systemd runs as the
# first process there, and what docs/deployment.md says is done: `dpkg -i`, the model's folder, `systemctl enable --now`. Then:
# the server translates; it runs as its own user, without capabilities, with a read-only file system; reload and restart
# work, and so does an upgrade by the same package; stop ends it with status 0; `dpkg -r` and `dpkg -P` remove what was installed.
# Needs root, overlayfs and systemd on a Debian with the package's dependencies.
set -euo pipefail

root=/run/check-deb/root

# The file system of the test, and its systemd, whose first process this becomes.
if [ "${1:-}" = --boot ]; then
  mount -t tmpfs tmpfs /run
  mkdir -p $root /run/check-deb/{upper,work}
  mount -t overlay overlay -o lowerdir=/,upperdir=/run/check-deb/upper,workdir=/run/check-deb/work $root
  mount -t proc proc $root/proc
  mount -t sysfs -o ro sysfs $root/sys
  mount -t cgroup2 cgroup2 $root/sys/fs/cgroup
  for folder in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs $root/$folder; done
  chmod 1777 $root/tmp
  while read -r name minor; do mknod -m 666 $root/dev/$name c 1 "$minor"; done <<<$'null 3\nzero 5\nfull 7\nrandom 8\nurandom 9'
  mkdir $root/dev/{shm,pts}
  mount -t tmpfs tmpfs $root/dev/shm
  mount -t devpts -o newinstance,ptmxmode=666 devpts $root/dev/pts
  ln -s pts/ptmx $root/dev/ptmx
  ip link set lo up
  # Nothing of this machine starts there.
  rm -rf $root/etc/systemd/system/*.wants
  printf '[Unit]\nDefaultDependencies=no\n' >$root/etc/systemd/system/check.target
  mkdir $root/check
  cp "$2" $root/check/regard.deb
  cp -r "$3" $root/check/model
  cp "$0" $root/check/check_deb.sh
  exec 9>"$4"
  # Not chroot, in which PrivateUsers= does not work.
  cd $root
  mkdir outside
  pivot_root . outside
  umount -l /outside
  rmdir /outside
  (
    status=0
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 bash /check/check_deb.sh --inside 9>&- || status=$?
    echo $status >&9
    kill -s RTMIN+3 1
  ) &
  exec env -i container=check PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=check.target --log-target=journal --log-level=notice 9>&- >/dev/null 2>&1
fi

fail() {
  echo "$*" >&2
  systemctl status --no-pager --lines=20 regard >&2 || true
  exit 1
}
# Waits until a command succeeds.
wait_for() {
  for _ in $(seq 150); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.2
  done
  fail "in vain: $*"
}
property() { systemctl show --value -p "$1" regard; }

if [ "${1:-}" = --inside ]; then
  cd /check
  wait_for systemctl is-active check.target
  echo "== dpkg -i"
  dpkg -i regard.deb >dpkg.log 2>&1 || { cat dpkg.log >&2; exit 1; }
  regard --version
  [ "$(property ActiveState)" = inactive ] || fail "it is not started by the installation"
  # As docs/deployment.md says.
  install -d -o regard -g regard /var/lib/regard
  cp -r model /var/lib/regard/model
  echo "== systemctl enable --now regard"
  systemctl enable --now --quiet regard
  wait_for regard serve --health-check
  translate() {
    python3 - <<'ASK'
import json, urllib.request
server = "http://127.0.0.1:5000"
source = json.load(urllib.request.urlopen(server + "/languages"))[0]
target = next(code for code in source["targets"] if code != source["code"])
body = json.dumps({"q": "The cat sleeps.", "source": source["code"], "target": target}).encode()
request = urllib.request.Request(server + "/translate", body, {"Content-Type": "application/json"})
print(json.load(urllib.request.urlopen(request))["translatedText"])
ASK
  }
  translate | grep . || fail "no translation"
  echo "== what it may do"
  pid=$(property MainPID)
  [ "$(stat -c %U "/proc/$pid")" = regard ] || fail "it runs as $(stat -c %U "/proc/$pid")"
  grep -qx $'CapEff:\t0*' "/proc/$pid/status" && grep -qx $'NoNewPrivs:\t1' "/proc/$pid/status" && grep -qx $'Seccomp:\t2' "/proc/$pid/status" ||
    fail "$(grep -E 'Cap|Priv|Seccomp' "/proc/$pid/status")"
  for folder in / /etc /etc/regard /usr /home /root; do
    if nsenter -t "$pid" -m sh -c "touch $folder/written 2>/dev/null"; then fail "it can write to $folder"; fi
  done
  nsenter -t "$pid" -m setpriv --reuid regard --regid regard --clear-groups sh -c 'touch /var/lib/regard/written && ! touch /etc/written 2>/dev/null' ||
    fail "it cannot write to its own folder"
  grep -E 'Uid|CapEff|NoNewPrivs|Seccomp:' "/proc/$pid/status" | tr '\t\n' '  '
  echo
  echo "== reload, restart, upgrade"
  systemctl reload regard
  translate >/dev/null || fail "no translation after a reload"
  [ "$(property MainPID)" = "$pid" ] || fail "a reload is not a restart"
  systemctl restart regard
  wait_for regard serve --health-check
  pid=$(property MainPID)
  dpkg -i regard.deb >dpkg.log 2>&1 || { cat dpkg.log >&2; exit 1; }
  wait_for regard serve --health-check
  [ "$(property MainPID)" != "$pid" ] || fail "after an upgrade the old program still runs"
  echo "== stop"
  systemctl stop regard
  [ "$(property Result) $(property ExecMainStatus)" = "success 0" ] || fail "$(property Result) $(property ExecMainStatus)"
  if regard serve --health-check 2>/dev/null; then fail "it still answers"; fi
  journalctl --no-pager -o cat -u regard | grep -E '^regard: (serving|page|finished)' | tail -3
  echo "== dpkg -r, dpkg -P"
  systemctl start regard
  wait_for regard serve --health-check
  dpkg -r regard >dpkg.log 2>&1 || { cat dpkg.log >&2; exit 1; }
  [ "$(property LoadState) $(property ActiveState)" = "not-found inactive" ] || fail "$(property LoadState) $(property ActiveState)"
  [ ! -e /usr/bin/regard ] && [ -e /etc/regard/serve.toml ] || fail "settings stay, the program goes"
  dpkg -P regard >dpkg.log 2>&1 || { cat dpkg.log >&2; exit 1; }
  [ ! -e /etc/regard/serve.toml ] && [ -e /var/lib/regard/model/config.json ] || fail "settings go, models stay"
  exit 0
fi

[ $# = 2 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "needs root: namespaces and mounts" >&2; exit 2; }
[ -x /lib/systemd/systemd ] || { echo "needs systemd" >&2; exit 2; }
status=$(mktemp)
trap 'rm -f "$status"' EXIT
# Another process is the first one outside, so that a systemd that hangs ends with its namespace.
timeout --kill-after=5 180 unshare --mount --propagation private --pid --net --uts --ipc --cgroup --fork --kill-child \
  bash "$0" --boot "$(realpath "$1")" "$(realpath "$2")" "$status" || true
[ "$(cat "$status")" = 0 ] || { echo "the Debian package does not work" >&2; exit 1; }
echo "the Debian package works"
