/**
 * Operators of ONNX whose outputs hold numbers of inputs of the same type, or zeros. onnxruntime's CPU runs all of them with int32.
 */
export const MOVERS: ReadonlySet<string> = new Set([
  ...[
    'Compress',
    'Concat',
    'Expand',
    'Flatten',
    'Gather',
    'GatherElements',
    'GatherND',
    'Identity',
    'Pad',
    'Reshape',
  ],
  ...['ScatterElements', 'ScatterND', 'Slice', 'Split', 'Squeeze', 'Tile', 'Transpose', 'Unsqueeze', 'Where'],
])
