import { describe, expect, it } from 'vitest'
import { SCHEMAS } from '../../../../lib/models/onnx/schemas/schema_table.js'
import {
  leastCount,
  mostCount,
  parameterAt,
  schemaAt,
  schemasOf,
  typeKey,
} from '../../../../lib/models/onnx/schemas/schemas.js'

/** Types of TensorProto.DataType. */
const [FLOAT, INT64, STRING, BFLOAT16] = [1, 7, 8, 16]

describe('schemas of ONNX operators', () => {
  it('parses every line of the table', () => {
    let count = 0
    for (const [domain, operators] of Object.entries(SCHEMAS)) {
      for (const name of Object.keys(operators)) {
        const schemas = schemasOf(domain, name)!
        count += schemas.length
        for (const { isDeprecated, inputs, outputs, attributes } of schemas.filter(
          (each) => !each.isDeprecated,
        )) {
          expect(isDeprecated).toBe(false)
          for (const { types } of [...inputs, ...outputs]) expect(types.size, name).toBeGreaterThan(0)
          for (const { type } of attributes.values()) expect(type, name).toBeGreaterThan(0)
        }
      }
    }
    // The number of schemas of onnx 1.23.2.
    expect(count).toBe(659)
  })

  it('finds the version that holds', () => {
    expect(schemaAt('', 'Conv', 10)!.since).toBe(1)
    expect(schemaAt('', 'Conv', 11)!.since).toBe(11)
    expect(schemaAt('', 'Conv', 21)!.inputs[0]!.types.has(typeKey(BFLOAT16))).toBe(false)
    expect(schemaAt('', 'Conv', 22)!.inputs[0]!.types.has(typeKey(BFLOAT16))).toBe(true)
    expect(schemaAt('', 'Gelu', 19)).toBeUndefined()
    expect(schemaAt('', 'constructor', 19)).toBeUndefined()
    expect(schemaAt('toString', 'Conv', 19)).toBeUndefined()
    expect([9, 10].map((version) => schemaAt('', 'Upsample', version)!.isDeprecated)).toEqual([false, true])
  })

  it('keeps defaults of each version', () => {
    const axis = [1, 12, 13].map(
      (version) => schemaAt('', 'Softmax', version)!.attributes.get('axis')!.defaultText,
    )
    expect(axis).toEqual(['1', '1', '-1'])
    const mode = 'coordinate_transformation_mode'
    expect(schemaAt('', 'RoiAlign', 15)!.attributes.has(mode)).toBe(false)
    expect(schemaAt('', 'RoiAlign', 16)!.attributes.get(mode)!.defaultText).toBe('half_pixel')
    expect(schemaAt('', 'Concat', 3)!.attributes.get('axis')!.isRequired).toBe(false)
    expect(schemaAt('', 'Concat', 4)!.attributes.get('axis')!.isRequired).toBe(true)
    expect(schemaAt('', 'RNN', 14)!.attributes.get('activations')!.defaultText).toBe('Tanh,Tanh')
  })

  it('counts inputs and outputs', () => {
    const counts = (name: string, version: number): number[] => {
      const { inputs, outputs } = schemaAt('', name, version)!
      return [leastCount(inputs), mostCount(inputs), leastCount(outputs), mostCount(outputs)]
    }
    expect(counts('Abs', 13)).toEqual([1, 1, 1, 1])
    expect(counts('Conv', 11)).toEqual([2, 3, 1, 1])
    expect(counts('Constant', 13)).toEqual([0, 0, 1, 1])
    expect(counts('LSTM', 14)).toEqual([3, 8, 0, 3])
    expect(counts('Concat', 13)).toEqual([1, Number.POSITIVE_INFINITY, 1, 1])
    // Trip count and condition are optional, and yet have their places before the values.
    expect(counts('Loop', 1)).toEqual([3, Number.POSITIVE_INFINITY, 1, Number.POSITIVE_INFINITY])
    expect(counts('Loop', 13)).toEqual([2, Number.POSITIVE_INFINITY, 1, Number.POSITIVE_INFINITY])
  })

  it('tells variables from types of their own', () => {
    const { inputs } = schemaAt('', 'Loop', 13)!
    expect(parameterAt(inputs, 9)).toMatchObject({ variable: 'V', isHomogeneous: false })
    const reshape = schemaAt('', 'Reshape', 13)!
    expect(reshape.inputs[1]).toMatchObject({ variable: undefined, option: 'single' })
    expect([...reshape.inputs[1]!.types]).toEqual([typeKey(INT64)])
    expect(parameterAt(reshape.inputs, 2)).toBeUndefined()
    expect(schemaAt('', 'SequenceAt', 11)!.inputs[0]!.types.has(typeKey(FLOAT, 'S'))).toBe(true)
    expect(schemaAt('ai.onnx.ml', 'ZipMap', 1)!.outputs[0]!.types).toEqual(
      new Set([`Q${typeKey(STRING)}${typeKey(FLOAT)}`, `Q${typeKey(INT64)}${typeKey(FLOAT)}`]),
    )
  })
})
