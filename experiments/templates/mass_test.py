import rlt


def test_my_mass_learns(tmp_path):
    run = rlt.train("my-mass", board="host", out=tmp_path / "run", quiet=True)
    assert run.summary["return_mean"] > -15  # EDIT: what a good policy gets
