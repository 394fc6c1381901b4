/** Compares the tables with an independent list of the format's structs and operators, line by line. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { OPERATORS, type OperatorSchema } from '../../../lib/formats/tmfile/operators.js'
import { STRUCT_LAYOUTS } from '../../../lib/formats/tmfile/schema.js'
import type { Field, Fields } from '../../../lib/formats/tmfile/struct_layout.js'
import { structLayout } from '../../../lib/formats/tmfile/struct_layout.js'

const sheet = new URL('../../fixtures/tmfile_operators.md', import.meta.url)

/** `vec<f32>? offset_vf_ratios` for the field `ratios`. */
function typeOnSheet(field: Field): string {
  if (field.kind === 'scalar') return field.type
  if (field.kind === 'string') return 'string'
  return `vec<${field.type}>${field.isOptional ? '?' : ''}`
}

interface SheetOperator {
  readonly number: number
  readonly name: string
  readonly support: string
  readonly byteLength: number
  readonly fields: readonly string[]
}

function operatorsOnSheet(): SheetOperator[] {
  const lines = readFileSync(sheet, 'utf8').split('\n')
  return lines.flatMap((line) => {
    const row = /^\| (\d+) \| (\S+) \| ([L-][S-]) \| (\d+) \| (.*) \|$/.exec(line)
    if (!row) return []
    const [, number, name, support, byteLength, fields] = row as unknown as string[]
    const listed = fields!.startsWith('(') ? [] : [...fields!.matchAll(/(\d+):(\S+) (\w+)/g)]
    return [
      {
        number: Number(number),
        name: name!,
        support: support!,
        byteLength: Number(byteLength),
        fields: listed.map(([, position, type, field]) => {
          return `${position}:${type} ${field!.replace(/^offset_((vf|vi|va|s)_)?(?=[a-z])/, type!.startsWith('vec') || type === 'string' ? '' : 'offset_')}`
        }),
      },
    ]
  })
}

describe('the independent list', () => {
  it.each(operatorsOnSheet())('has the operator $number $name as the table has it', (expected) => {
    const entry = (OPERATORS as readonly OperatorSchema[]).find(({ number }) => number === expected.number)!
    expect(entry.name).toBe(expected.name)
    expect(`${entry.canLoad ? 'L' : '-'}${entry.canSave ? 'S' : '-'}`).toBe(expected.support)
    expect(entry.layout.byteLength).toBe(expected.byteLength)
    const fields = entry.layout.fields.map(({ name, field, offset }) => {
      return `${offset}:${typeOnSheet(field)} ${name}`
    })
    expect(fields).toEqual(expected.fields)
  })

  it('has as many operators as the table', () => {
    expect(operatorsOnSheet().map(({ number }) => number)).toEqual(OPERATORS.map(({ number }) => number))
  })
})

it('structs have the sizes of C structs', () => {
  const sizes = Object.fromEntries(
    Object.entries(STRUCT_LAYOUTS).map(([name, { byteLength }]) => [name, byteLength]),
  )
  expect(sizes).toEqual({
    header: 12,
    root: 16,
    subgraph: 40,
    device: 28,
    node: 28,
    attribute: 12,
    operator: 12,
    tensor: 32,
    quantization: 12,
    buffer: 8,
    text: 8,
  })
})

it('older forms of blocks have their stated sizes', () => {
  for (const { older, layout, name } of OPERATORS as readonly OperatorSchema[]) {
    for (const { byteLength, fields } of older) {
      if (fields) expect([name, structLayout(fields as Fields).byteLength]).toEqual([name, byteLength])
      expect(byteLength).not.toBe(layout.byteLength)
    }
  }
})
