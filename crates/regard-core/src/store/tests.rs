use super::*;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/marian/swish-shared")
}

/// The goldens' model as a downloadable one, from its folder.
fn remote(name: &str) -> RemoteModel {
    let files = fs::read_dir(golden()).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let record = download::record(&path).unwrap();
        RemoteFile {
            name: record.name,
            location: path.to_str().unwrap().into(),
            bytes: Some(record.bytes),
            sha256: Some(record.sha256),
            unpacked_sha256: None,
        }
    });
    RemoteModel {
        name: name.into(),
        version: Some("1.0".into()),
        licence: Some("cc-by-nc-4.0".into()),
        origin: "a list".into(),
        files: files.collect(),
        ..RemoteModel::default()
    }
}

#[test]
fn a_model_is_installed_listed_checked_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = ModelStore::new(folder.path().join("models"));
    assert!(store.list().unwrap().is_empty());
    let model = remote("org/name");
    let mut seen = Vec::new();
    let installed = store.install(&model, &mut |progress| seen.push(progress.file.to_owned())).unwrap();
    assert!(seen.iter().any(|file| file == "model.safetensors"));
    assert_eq!((installed.name.as_str(), installed.model_type), ("org/name", Some("marian")));
    assert_eq!(installed.languages.source.as_deref(), Some("aa"));
    assert!(installed.licence.as_ref().is_some_and(|licence| !licence.commercial));
    assert_eq!(store.find("org/name").as_deref(), Some(installed.folder.as_path()));
    assert_eq!(store.list().unwrap().len(), 1);
    assert_eq!(store.changed_files("org/name").unwrap(), Some(Vec::new()));
    // Installing it again is not an error; installing another one with that name is.
    store.install(&model, &mut |_| panic!("nothing is fetched")).unwrap();
    let newer = RemoteModel { version: Some("2.0".into()), ..model.clone() };
    let message = store.install(&newer, &mut |_| ()).unwrap_err().to_string();
    assert!(message.contains("is installed already: it comes from a list, version 1.0;"), "{message}");
    fs::write(installed.folder.join("config.json"), "{}").unwrap();
    assert_eq!(store.changed_files("org/name").unwrap(), Some(vec!["config.json".into()]));
    assert!(store.list().unwrap()[0].problem.is_some());
    store.remove("org/name").unwrap();
    assert!(store.find("org/name").is_none() && store.list().unwrap().is_empty());
    assert!(store.remove("org/name").unwrap_err().to_string().ends_with("there is no such model"));
}

#[test]
fn what_is_wrong_is_not_installed() {
    let folder = tempfile::tempdir().unwrap();
    let store = ModelStore::new(folder.path());
    let mut model = remote("en-de");
    model.files[0].sha256 = Some("00".into());
    let message = store.install(&model, &mut |_| ()).unwrap_err().to_string();
    assert!(message.contains("should have the SHA-256 00, but has "), "{message}");
    assert!(store.find("en-de").is_none() && store.list().unwrap().is_empty());
    // The partial download stays for the next attempt, and can be removed.
    store.install(&remote("en-de"), &mut |_| ()).unwrap();
    assert!(store.find("en-de").is_some());
    model.name = "x".into();
    model.files.truncate(1);
    model.files[0].sha256 = None;
    assert!(store.install(&model, &mut |_| ()).is_err(), "one file is no model");
    store.remove("x").unwrap();
    for name in ["..", "../x", "a/b/c", ".hidden", "", "a b", "/etc"] {
        assert!(store.find(name).is_none(), "{name}");
        let wrong = RemoteModel { name: name.into(), ..remote("y") };
        assert!(store.install(&wrong, &mut |_| ()).is_err(), "{name}");
        assert!(store.remove(name).is_err(), "{name}");
    }
    let mut out = remote("out");
    out.files[0].name = "../out".into();
    let message = store.install(&out, &mut |_| ()).unwrap_err().to_string();
    assert!(message.contains("is not the name of a file"), "{message}");
}

#[test]
fn any_bytes_are_a_list_or_an_error() {
    for text in ["", "[]", "{\"data\": []}", "{\"models\": {}, \"baseUrl\": \"\"}", "[{\"links\": [\"..\"]}]"]
    {
        fuzzing::index(text.as_bytes());
    }
}
