"""Whether a fix shows in two versions of a function."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.construct.code.pair import shows_remedy

SEEN = {
    "CWE-22": ("File(dir, e.getName())", "f = new File(dir, e.getName()); if (!f.startsWith(dir)) throw x;"),
    "CWE-78": ('os.system(f"git clone {folder}")', 'subprocess.run(["git", "clone", folder])'),
    "CWE-79": ("$(box).html(value)", "$(box).text(value)"),
    "CWE-89": ('db.get("… id = \'" + id + "\'")', 'db.get("… id = ?", [id])'),
    "CWE-200": ('<a target="_blank">', '<a target="_blank" rel="noopener">'),
    "CWE-295": ("{InsecureSkipVerify: true}", "{InsecureSkipVerify: false}"),
    "CWE-326": ("RSA.generate(1024)", "RSA.generate(2048)"),
    "CWE-327": ("hashlib.md5(x)", "hashlib.sha256(x)"),
    "CWE-377": ("tempfile.mktemp()", "tempfile.mkstemp()"),
    "CWE-502": ("yaml.load(f)", "yaml.safe_load(f)"),
    "CWE-916": ("crypto.createHmac('sha1', salt)", "bcrypt.hashSync(password, 10)"),
}
UNSEEN = {
    "a path made otherwise": ("CWE-22", "join(top, sub, c)", "join(full, c)"),
    "another reader": ("CWE-78", "IO.read(path)", "File.read(path)"),
    "white space": ("CWE-78", ".then(()=>rimraf(dir))", ".then(() => rimraf(dir))"),
    "the same call by another name": ("CWE-502", "YAML.load(File.read(path))", "YAML.load_file(path)"),
    "behind a helper": ("CWE-502", "pickle.load(f)", "io.pickle_load(path)"),
    "another exception": ("CWE-89", "raise Forbidden()", "raise web.Forbidden()"),
    "a weakness of bounds": ("CWE-125", "a[i]", "if (i < n) a[i]"),
    "a weakness without patterns": ("CWE-1", "x = 1", "x = escape(1)"),
}


@pytest.mark.parametrize(("cwe", "versions"), SEEN.items(), ids=list(SEEN))
def test_a_fix_is_seen(cwe: str, versions: tuple[str, str]):
    """Pairs whose label is plain would fall."""
    assert shows_remedy(cwe, *versions)
    assert not shows_remedy(cwe, versions[1], versions[0]), "a fix backwards is none"


@pytest.mark.parametrize(("cwe", "insecure", "secure"), UNSEEN.values(), ids=list(UNSEEN))
def test_a_tidied_function_is_no_fix(cwe: str, insecure: str, secure: str):
    """Its label is a guess."""
    assert not shows_remedy(cwe, insecure, secure)


@given(st.sampled_from(sorted(SEEN)), st.text(max_size=200))
def test_nothing_is_fixed_where_nothing_changed(cwe: str, code: str):
    """Two equal versions have no label."""
    assert not shows_remedy(cwe, code, code)
