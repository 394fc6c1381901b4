"""Compresses a model with a Python tool, and prints the CPU seconds and peak memory of the process as JSON.

python compress.py TOOL INPUT OUTPUT    exits with 3 where the tool is not installed
"""
import json
import resource
import sys


def half_of_onnxruntime(source, target):
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), target)


def half_of_converter(source, target):
    import onnx
    from onnxconverter_common import float16

    onnx.save(float16.convert_float_to_float16(onnx.load(source), keep_io_types=True), target)


def dynamic(source, target):
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(source, target)


def blocks(source, target):
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(onnx.load(source), block_size=32, is_symmetric=True)
    quantizer.process()
    quantizer.model.save_model_to_file(target)


def bnb4(source, target):
    import onnx
    from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer

    quantizer = MatMulBnb4Quantizer(onnx.load(source), 1, 64)
    quantizer.process()
    quantizer.model.save_model_to_file(target)


TOOLS = {
    'onnxruntime float16': half_of_onnxruntime,
    'onnxconverter-common': half_of_converter,
    'quantize_dynamic': dynamic,
    'MatMulNBits': blocks,
    'MatMulBnb4': bnb4,
}

tool, source, target = sys.argv[1:]
try:
    TOOLS[tool](source, target)
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(3)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({'cpuSeconds': usage.ru_utime + usage.ru_stime, 'peakMib': usage.ru_maxrss / 1024}))
