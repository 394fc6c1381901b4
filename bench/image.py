"""Times numpy and OpenCV on image batches; called by image.mjs. Reads cases as JSON, prints seconds per case."""
import json
import sys
import time

import numpy as np

try:
    import cv2
except ImportError:
    cv2 = None

MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)
# As in image.mjs.
HELD_RESULTS = 32
REPEAT_SECONDS = 0.05


def with_numpy(images, dtype, order):
    batch = np.stack(images)
    if order == "bgr":
        batch = batch[..., ::-1]
    normal = (batch.astype(np.float32) - MEAN) / STD
    return np.ascontiguousarray(normal.transpose(0, 3, 1, 2)).astype(dtype, copy=False)


def with_opencv(images, dtype, order):
    # It divides by one number only; several would take a second pass.
    blob = cv2.dnn.blobFromImages(images, 1 / 57.5, None, MEAN.tolist(), swapRB=order == "bgr")
    return blob.astype(dtype, copy=False)


def best_of(run, rounds):
    """Results that are no longer referenced give their memory to the next ones. Short calls take more rounds."""
    best = float("inf")
    ends = time.perf_counter() + rounds * REPEAT_SECONDS
    while rounds > 0 or time.perf_counter() < ends:
        rounds -= 1
        best = min(best, seconds_of(run, []))
    return best


def best_of_held(run):
    held = []
    return min(seconds_of(run, held) for _ in range(HELD_RESULTS))


def seconds_of(run, kept):
    started = time.perf_counter()
    kept.append(run())
    return time.perf_counter() - started


def main():
    given = json.load(sys.stdin)
    if cv2 is not None:
        cv2.setNumThreads(given["threads"])
    results = []
    for case in given["cases"]:
        rng = np.random.default_rng(1)
        shape = (case["size"], case["size"], 3)
        images = [rng.integers(0, 256, shape, np.uint8) for _ in range(case["batch"])]
        dtype, order = np.dtype(case["dtype"]), case["order"]
        result = {"numpy": best_of(lambda: with_numpy(images, dtype, order), max(2, given["rounds"] // 2))}
        if cv2 is not None:
            result["opencv"] = best_of(lambda: with_opencv(images, dtype, order), given["rounds"])
            result["opencvHeld"] = best_of_held(lambda: with_opencv(images, dtype, order))
        results.append(result)
    json.dump({"results": results, "opencv": cv2.__version__ if cv2 is not None else None}, sys.stdout)


main()
