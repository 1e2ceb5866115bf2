"""The files under `deploy/`: one request in all, their steps run here, and their schemas (with the network)."""

import os
import re
import runpy
import shutil
import subprocess
import tomllib
import venv
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

import cot2lib
from cot2lib.cli import _parser
from cot2lib.cli.training import asked_for
from cot2lib.kit import array

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CLAIM, JOB, POD = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
SKY = yaml.safe_load((DEPLOY / "sky.yaml").read_text())
POD_SPEC = JOB["spec"]["template"]["spec"]
ENTRY = '#!/bin/bash\necho "$0" "$@"\nenv | grep -E \'^(COT2_|OMP|PBS)\' | sort\n'


def stub(folder, *names):
    """Programs that say how they were called, and an environment that finds them first."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text(ENTRY)
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def instructions(text):
    """Instructions of a container file with their arguments, lines joined."""
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in plain.splitlines() if line.strip()]


STEPS = instructions((DEPLOY / "Containerfile").read_text())


def values(words):
    return dict(word.split("=", 1) for word in words.split())


def built(folder, environ, **given):
    """Take the container file's steps in a folder, as a script; the process of its last RUN."""
    done = None
    known = dict(environ)
    for name, said in STEPS:
        if name == "ARG":
            known |= {key: given.get(key, value) for key, value in values(said).items()}
        elif name == "COPY":
            *sources, target = said.split()
            for source in sources:
                copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                copy(ROOT / source, folder / (target if (ROOT / source).is_dir() else source))
        elif name == "RUN":
            done = subprocess.run(["bash", "-c", said], cwd=folder, env=known, capture_output=True, text=True)
    return done


@pytest.mark.parametrize("device, index", [("cpu", "https://download.pytorch.org/whl/cpu"), ("cuda", "pypi.org")])
def test_the_image_installs_the_package_for_a_device(tmp_path, device, index):
    (tmp_path / "image").mkdir()
    done = built(tmp_path / "image", stub(tmp_path / "bin", "pip"), DEVICE=device)
    assert not done.returncode and index in done.stdout
    assert "-c constraints.txt .[fast]" in done.stdout and (tmp_path / "image" / "cot2lib" / "cli").is_dir()


def test_an_unknown_device_ends_the_build(tmp_path):
    (tmp_path / "image").mkdir()
    done = built(tmp_path / "image", stub(tmp_path / "bin", "pip"), DEVICE="tpu")
    assert done.returncode == 2 and done.stderr == "DEVICE=tpu: choose cpu or cuda.\n" and not done.stdout


def test_the_image_is_told_all_that_it_copies():
    order = [name for name, _ in STEPS]
    assert order[0] == "FROM" and order[-1] == "ENTRYPOINT" and order.index("COPY") < order.index("RUN")
    kept = {line[1:] for line in (DEPLOY / "Containerfile.dockerignore").read_text().splitlines() if line[0] == "!"}
    assert kept == {word for name, said in STEPS if name == "COPY" for word in said.split()[:-1]}
    environ = values(next(said for name, said in STEPS if name == "ENV"))
    assert environ["COT2_STORE"] == "/store" and environ["COT2_COMMIT"] == "$COMMIT"


@pytest.mark.thorough
def test_the_image_s_steps_work_as_a_script(tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    environ = os.environ | {"PATH": f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    (tmp_path / "image").mkdir()
    done = built(tmp_path / "image", environ)
    assert not done.returncode, done.stderr[-3000:]
    said = subprocess.run(["cot2", "list"], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert said.returncode == 0 and "csft" in said.stdout


def requests(arguments):
    """The runs that arguments of `cot2` ask for; raises for what no command takes."""
    options = _parser().parse_args(arguments)
    assert options.shard == "auto"
    return asked_for(options)


def test_the_job_of_kubernetes_is_one_array():
    spec, [container] = JOB["spec"], POD_SPEC["containers"]
    environ = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert spec["completionMode"] == "Indexed" and POD_SPEC["restartPolicy"] == "Never"
    indices = [{"JOB_COMPLETION_INDEX": str(k), array.ARRAY: environ[array.ARRAY]} for k in range(spec["completions"])]
    assert [array.place(one) for one in indices] == [(k, spec["completions"]) for k in range(spec["completions"])]
    assert requests(container["args"])
    names = list(environ)
    assert environ["COT2_STORE"] == "/store/$(SHARD)" and names.index("SHARD") < names.index("COT2_STORE")
    claims = {part["persistentVolumeClaim"]["claimName"] for one in (POD_SPEC, POD["spec"]) for part in one["volumes"]}
    assert claims == {CLAIM["metadata"]["name"]} and CLAIM["spec"]["accessModes"] == ["ReadWriteMany"]
    assert {container["image"], POD["spec"]["containers"][0]["image"]} == {
        f"ghcr.io/cot2-companion/cot2:{cot2lib.__version__}"
    }


@pytest.mark.parametrize("queued", [{}, {"COT2_ARRAY": "0-31", "COT2_RUN": "budget --profile quick --threads 2"}])
def test_the_script_of_pbs_runs_a_shard(tmp_path, queued):
    environ = stub(tmp_path / "bin", "cot2") | {"PBS_ARRAY_INDEX": "3", "PBS_O_WORKDIR": str(tmp_path)} | queued
    done = subprocess.run(["bash", DEPLOY / "pbs.sh"], env=environ, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    command, *rest = done.stdout.splitlines()
    told = dict(line.split("=", 1) for line in rest)
    assert requests(command.split()[1:])
    first, last = map(int, told["COT2_ARRAY"].split("-"))
    assert array.place(told) == (3 - first, last - first + 1) and told["COT2_STORE"] == f"{tmp_path}/build/runs"
    if not queued:
        directive = re.search(r"^#PBS -J (\S+)$", (DEPLOY / "pbs.sh").read_text(), re.MULTILINE)[1]
        assert told["COT2_ARRAY"] == directive


def test_the_task_of_skypilot_runs_a_shard():
    assert SKY["resources"]["use_spot"] and SKY["resources"]["job_recovery"]["max_restarts_on_errors"]
    [mounted] = SKY["file_mounts"].values()
    assert mounted["mode"] == "MOUNT_CACHED", "the mode that takes every kind of write"
    command = SKY["run"].splitlines()[-1].replace("$RUN", SKY["envs"]["RUN"]).split()
    assert requests(command[1:]) and "/bucket/store/$SKYPILOT_JOB_RANK" in SKY["run"]


CHECKS = """
import sys, yaml, kubernetes_validate, sky
for document in yaml.safe_load_all(open("kubernetes.yaml")):
    kubernetes_validate.validate(document, "1.33", strict=True)
task = sky.Task.from_yaml("sky.yaml")
assert all(one.use_spot for one in task.resources) and task.storage_mounts
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "file, old, new",
    [
        ("kubernetes.yaml", "", ""),
        ("kubernetes.yaml", "completionMode: Indexed", "completionModes: Indexed"),
        ("sky.yaml", "use_spot: true", "use_spots: true"),
    ],
)
def test_schemas(tmp_path, file, old, new):
    """By SkyPilot's own reader and the published schemas of Kubernetes; a wrong word is seen."""
    python = runpy.run_path(str(ROOT / "release" / "tools.py"))["python"]("deploy")
    for name in ("kubernetes.yaml", "sky.yaml"):
        text = (DEPLOY / name).read_text()
        assert name != file or old in text
        (tmp_path / name).write_text(text.replace(old, new) if name == file and old else text)
    environ = os.environ | {"HOME": str(tmp_path)}
    done = subprocess.run([python, "-c", CHECKS], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert bool(done.returncode) == bool(old), done.stderr


def test_python_of_the_image_suits_the_project():
    version = re.fullmatch(r"python:([\d.]+)-slim", STEPS[0][1])[1]
    assert version in SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])
