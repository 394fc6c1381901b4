/**
 * Tests a binary that was built for another machine; the argument is the folder of the package, `--isa` the instruction
 * set that its kernels must use. Saves and opens a file, reorders its tensor to several layouts, and compares every element
 * with its offset in the layout.
 */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { isa: { type: 'string' } },
})
const [root] = positionals
// The same kernels on every machine.
if (options.isa) process.env.TILEWORK_MAX_ISA = options.isa
const { asTensor, open, parseLayout, planReorder, reorder, save } = await import(
  pathToFileURL(join(root, 'dist', 'index.js')).href
)
const addon = createRequire(import.meta.url)(join(root, 'build', 'Release', 'tilework.node'))

/** Three channels, and more than two blocks of channels with a tail. */
const SHAPES = [
  [2, 3, 9, 31],
  [2, 35, 5, 17],
]
const LAYOUTS = ['bfyx', 'byxf', 'b_fs_yx_fsv4', 'b_fs_yx_fsv16', 'bs_fs_yx_bsv16_fsv16', 'fbyx']
const ARRAYS = { uint8: Uint8Array, uint16: Uint16Array, float32: Float32Array, float64: Float64Array }

const { architecture, features, isa } = addon.cpu()
console.log(`Node ${process.version} for ${process.arch}: ${architecture} with ${features.join(', ')}`)
assert.deepEqual([architecture, isa], [process.arch, options.isa])

const kernels = new Set()
for (const shape of SHAPES) {
  for (const dtype of Object.keys(ARRAYS)) await throughFile(shape, dtype)
}
const names = [...kernels].sort()
console.log(`kernels: ${names.join(' ')}`)
assert.deepEqual(names, [`copy_${isa}`, `reorder_tiles_${isa}`])

async function throughFile(shape, dtype) {
  const path = join(root, `${dtype}-${shape.join('x')}.safetensors`)
  const values = ARRAYS[dtype].from({ length: shape.reduce((a, b) => a * b) }, (_, i) => (i % 251) + 1)
  await save(path, [asTensor(values, { name: 'x', shape })])
  const file = await open(path)
  for (const layout of LAYOUTS) {
    const stored = await reorder(file.tensors.at(0), layout).bytes()
    const expected = placed(values, shape, dtype, parseLayout(layout))
    assert.equal(Buffer.compare(stored, expected), 0, `${dtype} [${shape}] as ${layout}`)
    kernels.add(planReorder({ dtype, shape, from: 'bfyx', to: layout }).explain().kernel)
    const back = planReorder({ dtype, shape, from: layout, to: 'bfyx' })
    const found = new Uint8Array(values.byteLength)
    back.runSync(expected, found)
    assert.equal(
      Buffer.compare(found, new Uint8Array(values.buffer)),
      0,
      `${dtype} [${shape}] from ${layout}`,
    )
    kernels.add(back.explain().kernel)
  }
  file.close()
}

/** The expected storage, by the definition of the layout and without native code. */
function placed(values, shape, dtype, layout) {
  const storage = new ARRAYS[dtype](layout.storage(shape, { dtype }).elements)
  values.forEach((value, flat) => {
    let remaining = flat
    const index = shape.toReversed().map((extent) => {
      const at = remaining % extent
      remaining = Math.floor(remaining / extent)
      return at
    })
    storage[layout.offsetOf(shape, index.reverse(), { dtype })] = value
  })
  return new Uint8Array(storage.buffer)
}
