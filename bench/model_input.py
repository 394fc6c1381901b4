"""Times pictures to model inputs in Python; called by model_input.mjs. Each line of JSON is a case with the seconds to repeat it,
and its answer { name: CPU seconds of a call } of the libraries that are installed. One thread each."""
import json
import sys
import time

import numpy as np

MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)


def pillow(case):
    from PIL import Image

    resample = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}[case["filter"]]
    size = (case["side"], case["side"])

    def run(images):
        resized = [np.asarray(Image.fromarray(image).resize(size, resample)) for image in images]
        normal = (np.stack(resized).astype(np.float32) - MEAN) / STD
        return np.ascontiguousarray(normal.transpose(0, 3, 1, 2))

    return run


def torch_of(case):
    import torch
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms.v2 import functional

    torch.set_num_threads(1)
    mode = {"bilinear": InterpolationMode.BILINEAR, "bicubic": InterpolationMode.BICUBIC}[case["filter"]]
    mean, std = (torch.from_numpy(numbers).reshape(1, 3, 1, 1) for numbers in (MEAN, STD))
    size = [case["side"], case["side"]]

    def run(images):
        # Channels last, the faster of its two ways.
        resized = [functional.resize(torch.from_numpy(image).permute(2, 0, 1)[None], size, mode, antialias=True) for image in images]
        batch = resized[0] if len(resized) == 1 else torch.cat(resized)
        return batch.float().sub_(mean).div_(std).contiguous()

    return run


def opencv(case):
    import cv2

    cv2.setNumThreads(1)
    side = case["side"]

    def run(images):
        batch = []
        for image in images:
            height, width = image.shape[:2]
            ratio = min(side / height, side / width)
            inner = (round(width * ratio), round(height * ratio))
            left, top = ((side - size) // 2 for size in inner)
            resized = cv2.resize(image, inner, interpolation=cv2.INTER_LINEAR)
            borders = (top, side - inner[1] - top, left, side - inner[0] - left)
            batch.append(cv2.copyMakeBorder(resized, *borders, cv2.BORDER_CONSTANT, value=(114, 114, 114)))
        planes = np.ascontiguousarray(np.stack(batch).transpose(0, 3, 1, 2))
        return planes.astype(np.float32) / 255

    return run


def seconds_of(run, images, seconds):
    """The average of calls that take so many seconds of CPU time together."""
    calls, started = 0, time.process_time()
    while True:
        run(images)
        calls += 1
        spent = time.process_time() - started
        if spent >= seconds:
            return spent / calls


def main():
    kept = {}
    for line in sys.stdin:
        case = json.loads(line)
        key = json.dumps(case)
        if key not in kept:
            image = np.fromfile(case["pixels"], np.uint8).reshape(case["height"], case["width"], 3)
            made = {}
            for name, make in (("opencv", opencv),) if case["letterbox"] else (("pillow", pillow), ("torch", torch_of)):
                try:
                    made[name] = make(case)
                except ImportError as error:
                    print(f"{name} is skipped: {error}", file=sys.stderr, flush=True)
            kept[key] = ([image] * case["batch"], made)
        images, made = kept[key]
        print(json.dumps({name: seconds_of(run, images, case["seconds"]) for name, run in made.items()}), flush=True)


main()
