import { open } from 'tilework'

/** Elements that are shown of each tensor. */
const SHOWN = 4

/** @param {string} path @returns {Promise<import('./api').Inspection>} */
export async function inspect(path) {
  // A mapped file could not be replaced on Windows while it is open, and saves no copy here.
  const file = await open(path, { mode: 'read' })
  try {
    const tensors = []
    for (const tensor of file.tensors) {
      const { name, dtype, shape } = tensor
      tensors.push({ name, dtype, shape: [...shape], first: await firstElements(tensor) })
    }
    return { path, format: file.format, tensors }
  } finally {
    file.close()
  }
}

async function firstElements(tensor) {
  if (tensor.kind !== 'dense' || !tensor.hasData) return []
  const count = Math.min(SHOWN, tensor.shape.at(-1) ?? 1)
  const index = tensor.shape.map(() => 0)
  const elements = []
  for (let at = 0; at < count; at++)
    elements.push(String(tensor.at(...index.slice(0, -1), ...(index.length ? [at] : []))))
  return elements
}
