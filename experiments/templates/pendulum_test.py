import rlt


def test_my_pendulum_learns(tmp_path):
    run = rlt.train("my-pendulum", board="host", out=tmp_path / "run", quiet=True)
    assert run.summary["return_mean"] > -400  # EDIT: what a good policy gets
