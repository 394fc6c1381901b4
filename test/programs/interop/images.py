"""Random images resized, letterboxed and preprocessed by the libraries themselves: one JSON line a case, with the result in
base64. python3 images.py SEED COUNT LARGEST [sha256]; with the last word results are hashes, as in test/fixtures/images. Lines
{ "missing": NAME, "reason": TEXT } name what is not installed. Up to a largest side of 150 sides are uniform, beyond log-uniform, so
that most cases stay small and one side can be far longer."""
import base64
import hashlib
import importlib
import json
import logging
import os
import random
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
os.environ["YOLO_OFFLINE"] = "true"
logging.disable(logging.CRITICAL)


def pixels(seed, height, width, channels, kind):
    """The formula of image_cases.mjs."""
    x = (np.arange(height * width * channels, dtype=np.uint64) * np.uint64(2654435761) + np.uint64(seed * 40503 + 12345)) & np.uint64(0xFFFFFFFF)
    for shift, factor in ((15, 2246822519), (13, 3266489917)):
        x ^= x >> np.uint64(shift)
        x = (x * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    x ^= x >> np.uint64(16)
    byte = (x >> np.uint64(24)).astype(np.uint8).reshape(height, width, channels)
    if kind == "noise":
        return byte
    if kind == "edges":
        return np.where(byte < 128, 0, 255).astype(np.uint8)
    rows, columns, planes = np.indices((height, width, channels))
    return ((3 * columns + 5 * rows + 37 * planes + (byte >> 3)) & 255).astype(np.uint8)


# Sides beside the lengths of loads and registers, and beside 128, where torch changes its nearest neighbour.
EDGES = [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 128, 129]


UNIFORM = 150


def side(rng, most):
    if rng.random() < (0.4 if most <= UNIFORM else 0.15):
        return min(rng.choice(EDGES), most)
    return rng.randint(1, most) if most <= UNIFORM else round(most ** rng.random())


def given(rng, seed, most, channels):
    return {"seed": seed, "kind": rng.choice(["noise", "edges", "smooth"]), "height": side(rng, most), "width": side(rng, most), "channels": channels}


def source(case):
    i = case["input"]
    return pixels(i["seed"], i["height"], i["width"], i["channels"], i["kind"])


class Pillow:
    FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5, "mks2013": 6, "mks2021": 7}
    OPS = ["pillow", "pillow", "pillow", "pillow16", "background", "grey"]

    def __init__(self):
        import PIL
        from PIL import Image

        self.image = Image
        # 13 has another order of passes, and two more filters.
        self.like = "pillow" if int(PIL.__version__.split(".")[0]) >= 13 else "pillow12"

    def case(self, rng, seed, most):
        op = rng.choice(self.OPS)
        alpha = op == "pillow" and rng.random() < 0.2
        channels = 4 if alpha or op == "background" else 3 if op == "grey" else 1 if op == "pillow16" else rng.choice([1, 3, 3, 4])
        case = {"op": op, "input": given(rng, seed, most, channels)}
        if op.startswith("pillow"):
            sizes = {"height": side(rng, most), "width": side(rng, most)}
            if rng.random() < 0.1:
                same = rng.choice(["height", "width"])
                sizes[same] = case["input"][same]
            filters = list(self.FILTERS)[: 6 if op == "pillow16" or self.like == "pillow12" else 8]
            case |= sizes | {"filter": rng.choice(filters), "like": self.like}
        if alpha:
            case["alpha"] = True
        if op == "background":
            case["background"] = [rng.randint(0, 255) for _ in range(3)]
        return case

    def run(self, case):
        i, op = case["input"], case["op"]
        if op == "pillow16":
            array = pixels(i["seed"], i["height"], i["width"], 2, i["kind"]).view("<u2")[..., 0]
            return np.array(self.image.fromarray(array).resize((case["width"], case["height"]), self.FILTERS[case["filter"]]))
        array = source(case)
        if op == "grey":
            return np.array(self.image.fromarray(array).convert("L"))[..., None]
        if op == "background":
            over = self.image.new("RGBA", (i["width"], i["height"]), tuple(case["background"]) + (255,))
            return np.array(self.image.alpha_composite(over, self.image.fromarray(array)).convert("RGB"))
        mode = "RGBA" if case.get("alpha") else {1: "L", 3: "RGB", 4: "RGBX"}[i["channels"]]
        image = self.image.frombytes(mode, (i["width"], i["height"]), array.tobytes())
        result = np.array(image.resize((case["width"], case["height"]), self.FILTERS[case["filter"]]))
        return result.reshape(case["height"], case["width"], i["channels"])


class OpenCV:
    def __init__(self):
        import cv2

        self.cv2 = cv2

    def case(self, rng, seed, most):
        if rng.random() < 0.2:
            return self.letterbox_case(rng, seed, most)
        if rng.random() < 0.15:
            i = given(rng, seed, max(most // 2, 1), 3)
            return {"op": "yuv", "input": i | {"height": 2 * i["height"], "width": 2 * i["width"]}, "layout": rng.choice(["nv12", "nv21", "i420", "yv12"])}
        case = {"op": "opencv", "input": given(rng, seed, most, rng.choice([1, 3, 4])), "filter": rng.choice(["linear", "linear", "nearest", "area"])}
        i = case["input"]
        case |= {"height": side(rng, most), "width": side(rng, most)}
        if rng.random() < 0.2:
            i |= {"height": 2 * case["height"], "width": 2 * case["width"]}
        if case["filter"] == "area":
            if rng.random() < 0.4:
                i |= {side: case[side] * rng.randint(1, 4) for side in ("height", "width")}
            i |= {side: max(i[side], case[side]) for side in ("height", "width")}
        return case

    def letterbox_case(self, rng, seed, most):
        i = given(rng, seed, most, 3)
        if rng.random() < 0.3:
            return {"op": "preset", "name": "yolo", "size": side(rng, min(most, 640)), "input": i}
        flag = lambda: rng.random() < 0.5
        rules = {"center": flag(), "scaleup": flag(), "auto": flag(), "stride": rng.choice([32, 32, 14, 7])}
        return {"op": "letterbox", "input": i | {"channels": rng.choice([1, 3, 4])}, "height": side(rng, most), "width": side(rng, most)} | rules

    def letterbox(self, image, case):
        """The steps of ultralytics' LetterBox, with OpenCV's resize and border."""
        h, w = image.shape[:2]
        ratio = min(case["height"] / h, case["width"] / w)
        if not case["scaleup"]:
            ratio = min(ratio, 1.0)
        inner = max(round(w * ratio), 1), max(round(h * ratio), 1)
        spare = [case["width"] - inner[0], case["height"] - inner[1]]
        if case["auto"]:
            spare = [each % case["stride"] for each in spare]
        if case["center"]:
            spare = [each / 2 for each in spare]
        before = [max(round(each - 0.1), 0) if case["center"] else 0 for each in spare]
        after = [round(each + 0.1) for each in spare]
        if (w, h) != inner:
            image = self.cv2.resize(image, inner, interpolation=self.cv2.INTER_LINEAR)
        made = self.cv2.copyMakeBorder(image, before[1], after[1], before[0], after[0], self.cv2.BORDER_CONSTANT, value=(114,) * 4)
        return made.reshape(*made.shape[:2], case["input"]["channels"])

    def run(self, case):
        i, cv2 = case["input"], self.cv2
        if case["op"] == "letterbox":
            return self.letterbox(source(case), case)
        if case["op"] == "preset":
            square = {"height": case["size"], "width": case["size"], "center": True, "scaleup": True, "auto": False}
            return self.letterbox(source(case), case | square).transpose(2, 0, 1).astype(np.float32) / np.float32(255)
        if case["op"] == "yuv":
            array = pixels(i["seed"], i["height"] * 3 // 2, i["width"], 1, i["kind"])
            return cv2.cvtColor(array.reshape(i["height"] * 3 // 2, i["width"]), getattr(cv2, "COLOR_YUV2RGB_" + case["layout"].upper()))
        filters = {"linear": cv2.INTER_LINEAR, "nearest": cv2.INTER_NEAREST, "area": cv2.INTER_AREA}
        result = cv2.resize(source(case), (case["width"], case["height"]), interpolation=filters[case["filter"]])
        return result.reshape(case["height"], case["width"], i["channels"])


class Torchvision:
    def __init__(self):
        import torch
        from torchvision.transforms import InterpolationMode as mode
        from torchvision.transforms.v2 import functional

        from torchvision.transforms._presets import ImageClassification

        torch.set_num_threads(1)
        self.torch, self.v2, self.resize, self.preset = torch, functional, functional.resize, ImageClassification
        self.filters = {"bilinear": mode.BILINEAR, "bicubic": mode.BICUBIC, "lanczos": mode.LANCZOS, "nearest": mode.NEAREST_EXACT}

    def case(self, rng, seed, most):
        case = {"op": "torch", "input": given(rng, seed, most, rng.choice([1, 3, 4])), "height": side(rng, most), "width": side(rng, most), "filter": rng.choice(list(self.filters))}
        if rng.random() < 0.1:
            sizes = {"size": rng.randint(8, 160), "resizeSize": rng.randint(8, 160)}
            i = case["input"] | {"channels": 3, "height": rng.randint(20, 220), "width": rng.randint(20, 220)}
            return {"op": "preset", "name": "torchvision", "input": i} | sizes | rng.choice([{}, {"backend": "pil"}, {"backend": "torchvision"}])
        # One pixel of several channels ends in an internal assertion of torch 2.15 (UpSampleKernelAVXAntialias.h:269).
        return case | {"width": 2} if case["height"] == case["width"] == 1 else case

    def run(self, case):
        if case["op"] == "preset":
            from PIL import Image

            if case.get("backend") != "torchvision":
                return self.preset(crop_size=case["size"], resize_size=case["resizeSize"])(Image.fromarray(source(case))).numpy()
            # The preset itself resizes tensors in float32; its steps in transforms.v2 keep bytes.
            image = self.torch.from_numpy(source(case)).permute(2, 0, 1).contiguous()
            image = self.v2.center_crop(self.resize(image, [case["resizeSize"]], antialias=True), [case["size"]] * 2)
            return self.v2.normalize(self.v2.to_dtype(image, self.torch.float32, scale=True), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]).numpy()
        planes = self.torch.from_numpy(source(case)).permute(2, 0, 1).contiguous()
        sizes = (case["height"], case["width"])
        return self.resize(planes, sizes, interpolation=self.filters[case["filter"]], antialias=True).permute(1, 2, 0).numpy()


class Transformers:
    KINDS = {"ViT": "vit", "CLIP": "clip", "Siglip": "siglip", "ConvNext": "convnext", "Detr": "detr", "DPT": "dpt", "GLPN": "glpn", "DeiT": "deit"}

    def __init__(self):
        self.processors = {}
        for kind, module in self.KINDS.items():
            for backend in ("pil", "torchvision"):
                pil = backend == "pil"
                loaded = importlib.import_module(f"transformers.models.{module}.image_processing_{'pil_' if pil else ''}{module}")
                self.processors[kind, backend] = getattr(loaded, kind + "ImageProcessor" + ("Pil" if pil else ""))

    def case(self, rng, seed, most):
        kind = rng.choice(list(self.KINDS))
        config = {"image_processor_type": kind + "ImageProcessor"}
        side = lambda low=8, high=160: rng.randint(low, high)
        square = lambda: rng.choice([side(), [side(), side()], {"height": side(), "width": side()}])
        if rng.random() < 0.7:
            config["resample"] = rng.choice([0, 1, 2, 3])
        if rng.random() < 0.3 and kind != "GLPN":
            config["image_mean"] = [round(rng.random(), 3) for _ in range(3)]
            config["image_std"] = [round(0.1 + rng.random(), 3) for _ in range(3)]
        for name in ("do_rescale", "do_normalize"):
            if rng.random() < 0.15:
                config[name] = False
        if rng.random() < 0.15:
            config["rescale_factor"] = rng.choice([1 / 127.5, 0.00392156862745098, 1 / 256, 0.0037])
        self.sizes(rng, kind, config, side, square)
        if kind in ("CLIP", "DeiT", "ViT") and rng.random() < 0.8:
            config |= {"do_center_crop": rng.random() < 0.8, "crop_size": square()}
        if rng.random() < 0.08:
            config["do_resize"] = False
        channels = rng.choice([1, 4]) if kind in ("CLIP", "Siglip") and rng.random() < 0.35 else 3
        i = given(rng, seed, most, channels) | {"height": self.source_side(rng, most), "width": self.source_side(rng, most)}
        return {"op": "processor", "backend": rng.choice(["pil", "torchvision"]), "input": i, "config": config}

    @staticmethod
    def source_side(rng, most):
        return rng.randint(33, 220) if most <= UNIFORM else round(33 * (most / 33) ** rng.random())

    def sizes(self, rng, kind, config, side, square):
        short = side(20, 90)
        limited = {"shortest_edge": short, "longest_edge": short + rng.randint(0, 80)}
        most = {"max_height": side(), "max_width": side()}
        if kind in ("ViT", "DeiT"):
            config["size"] = rng.choice([square(), {"shortest_edge": side()}, limited, most])
        elif kind in ("CLIP", "Siglip"):
            config["size"] = rng.choice([side(), {"shortest_edge": side()}, {"height": side(), "width": side()}])
        elif kind == "ConvNext":
            config["size"] = rng.choice([side(), {"shortest_edge": rng.choice([383, 384, 390])}])
            if rng.random() < 0.5:
                config["crop_pct"] = rng.choice([0.875, 0.9, 1.0, 0.95])
        elif kind == "Detr":
            config["size"] = rng.choice([limited, {"height": side(), "width": side()}, most])
            if rng.random() < 0.3:
                config["pad_size"] = {"height": 260, "width": 260}
            if rng.random() < 0.15:
                config["do_pad"] = False
        elif kind == "DPT":
            config |= {"size": {"height": side(32), "width": side(32)}, "keep_aspect_ratio": rng.random() < 0.5, "ensure_multiple_of": rng.choice([1, 14, 32])}
            if rng.random() < 0.4:
                config |= {"do_pad": True, "size_divisor": rng.choice([14, 16, 32])}
        else:
            config["size_divisor"] = rng.choice([8, 32])

    def run(self, case):
        config = dict(case["config"])
        kind = config.pop("image_processor_type").replace("ImageProcessor", "")
        made = self.processors[kind, case["backend"]](**config)(source(case), return_tensors="np", input_data_format="channels_last")
        return np.asarray(made["pixel_values"][0])


def main(seed, count, most, hashed):
    rng = random.Random(seed)
    peers = []
    for name, peer in (("Pillow", Pillow), ("OpenCV", OpenCV), ("torchvision", Torchvision), ("transformers", Transformers)):
        try:
            peers.append((name, peer()))
        except Exception as error:
            print(json.dumps({"missing": name, "reason": str(error)[:200]}))
    for number in range(count if peers else 0):
        name, peer = peers[number % len(peers)]
        case = peer.case(rng, seed * 100000 + number, most)
        try:
            result = np.ascontiguousarray(peer.run(case))
            content = {"sha256": hashlib.sha256(result.tobytes()).hexdigest()} if hashed else {"data": base64.b64encode(result.tobytes()).decode()}
            expected = {"shape": list(result.shape), "dtype": str(result.dtype)} | content
        except Exception as error:
            expected = {"error": str(error)[:200]}
        print(json.dumps(case | {"peer": name, "expected": expected}), flush=number % 64 == 0)


main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), "sha256" in sys.argv)
