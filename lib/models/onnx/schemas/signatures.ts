/** Defaults of attributes, and which outputs are optional, by operator and version of its operator set. */
import { ownEntry } from '../../../own_entry.js'
import type { NewAttributeValue } from '../document/types.js'
import { OPERATOR_DEFAULTS } from './operator_defaults.js'

/** What an operator has in one version. */
export interface Signature {
  /** Indices of outputs. */
  readonly optional: ReadonlySet<number>
  readonly attributes: ReadonlyMap<string, NewAttributeValue>
}

/** The default of an attribute at a version of the operator set; undefined where it has none. */
export function defaultOf(
  domain: string,
  opType: string,
  opset: number,
  name: string,
): NewAttributeValue | undefined {
  return signatureAt(domain, opType, opset)?.attributes.get(name)
}

const SIGNATURES = new Map<string, Signature | undefined>()

/** Undefined for an operator that the set does not have. */
export function signatureAt(domain: string, opType: string, opset: number): Signature | undefined {
  const operator = ownEntry(ownEntry(OPERATOR_DEFAULTS, domain) ?? {}, opType)
  if (operator === undefined) return undefined
  const key = `${domain} ${opType} ${opset}`
  if (!SIGNATURES.has(key)) {
    const row = operator.split('|').findLast((each) => Number.parseInt(each, 10) <= opset)
    SIGNATURES.set(key, row === undefined ? undefined : parseRow(row))
  }
  return SIGNATURES.get(key)
}

function parseRow(row: string): Signature {
  const [, outputs = '-', ...attributes] = row.split(' ')
  return {
    optional: new Set(outputs === '-' ? [] : outputs.split(',').map(Number)),
    attributes: new Map(
      attributes.map((each) => {
        const [name = '', text = ''] = each.split('=')
        return [name, parseValue(text)]
      }),
    ),
  }
}

function parseValue(text: string): NewAttributeValue {
  const value = text.slice(2)
  switch (text[0]) {
    case 'i':
      return { type: 'INT', value: Number(value) }
    case 'f':
      return { type: 'FLOAT', value: Math.fround(Number(value)) }
    case 'I':
      return { type: 'INTS', value: value.split(',').map(Number) }
    case 'S':
      return { type: 'STRINGS', value: value.split(',') }
    default:
      return { type: 'STRING', value }
  }
}
