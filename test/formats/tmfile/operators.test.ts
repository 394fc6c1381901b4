/** Writes a file for every operator, reads it back, and rewrites it byte for byte. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PARAMETER_VALUES } from '../../../lib/formats/tmfile/enums.js'
import { OPERATORS, type OperatorSchema } from '../../../lib/formats/tmfile/operators.js'
import type { Field } from '../../../lib/formats/tmfile/struct_layout.js'
import { isUninitialised } from '../../../lib/formats/tmfile/struct_layout.js'
import { check, open, serialize } from '../../../lib/index.js'
import { TmfileModel } from '../../../lib/tmfile.js'
import { nodeOfNumber, variable } from './tmfile_bytes.js'

const i32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
const f32 = fc.float({ noNaN: true })

function valuesOf(field: Field): fc.Arbitrary<unknown> {
  if (field.kind === 'string')
    return fc.option(fc.string({ unit: 'grapheme', maxLength: 20 }).filter((text) => !text.includes('\0')))
  if (field.kind === 'vector') {
    const entry = { i32, f32, 'f32[4]': fc.tuple(f32, f32, f32, f32) }[field.type] as fc.Arbitrary<unknown>
    return fc.option(fc.array(entry, { maxLength: 6 }))
  }
  if (field.values !== undefined) return fc.constantFrom(...PARAMETER_VALUES[field.values]!.keys())
  if (field.type === 'f32') return f32
  if (field.type === 'u8') return fc.integer({ min: 0, max: 255 })
  return field.type === 'u32' ? fc.integer({ min: 0, max: 2 ** 32 - 1 }) : i32
}

function paramsOf({ fields }: OperatorSchema): fc.Arbitrary<Record<string, unknown>> {
  return fc
    .record(Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, valuesOf(field)])))
    .filter((params) => {
      // An uninitialised offset is not followed, so nothing can be stored there.
      return Object.entries(fields).every(
        ([name, field]) =>
          field.kind === 'scalar' || params[name] === null || !isUninitialised(field, 0, params),
      )
    })
}

function modelOf(number: number, params: object): TmfileModel {
  const [input, output] = [variable('in'), variable('out')]
  const source = nodeOfNumber('in', 12, [], [{ ...input, role: 'input' }])
  const node = nodeOfNumber('node', number, source.outputs, [output], params)
  return new TmfileModel({
    nodes: [source, node],
    tensors: [...source.outputs, output],
    inputs: [source],
    outputs: [node],
  })
}

describe.each(OPERATORS as readonly OperatorSchema[])('operator $number $name', (schema) => {
  it('is read back equal and rewritten byte for byte', async () => {
    await fc.assert(
      fc.asyncProperty(paramsOf(schema), async (params) => {
        const bytes = await serialize(modelOf(schema.number, params))
        const file = await open(bytes)
        const node = file.tmfile!.graph.nodes[1]!
        expect(node).toMatchObject({ name: 'node', operator: schema.name, operatorNumber: schema.number })
        expect(node.params).toEqual(asFloats(params, schema))
        expect(Buffer.compare(await serialize(file), bytes)).toBe(0)
        const canonical = await serialize(file, { mode: 'canonical' })
        expect(canonical.length).toBe(bytes.length)
      }),
      { numRuns: 12, seed: 7 },
    )
  })
})

it('only operators without inputs may have none', async () => {
  const unfed: string[] = []
  for (const { name, number } of OPERATORS) {
    const model = modelOf(number, {})
    model.graph.nodes[1]!.inputs = []
    const findings = await check(await serialize(model), { level: 'strict' })
    if (!findings.some(({ message }) => message.includes('has no inputs'))) unfed.push(name)
  }
  expect(unfed).toEqual(['Const', 'InputOp', 'Generic', 'Noop'])
})

/** Numbers rounded to float32; -0 is kept. */
function asFloats(params: Record<string, unknown>, { fields }: OperatorSchema): Record<string, unknown> {
  const round = (value: unknown): unknown =>
    Array.isArray(value) ? value.map(round) : typeof value === 'number' ? Math.fround(value) : value
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => {
      const field = fields[name]!
      const isFloat = 'type' in field && field.type.startsWith('f32')
      return [name, isFloat ? round(value) : value]
    }),
  )
}
