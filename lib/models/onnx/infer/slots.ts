/** Which types the inputs and outputs of a node may have, looked up in the table of operators. */
import { ownEntry } from '../../../own_entry.js'
import { standardDomain } from '../document/node.js'
import type { Operator } from '../document/read_node.js'
import { OPERATOR_SLOTS } from './operator_slots.js'

/** An input or output of an operator. */
export interface Slot {
  /** Type variable, or a type. Slots of one variable have the same type, unless `isFree`. */
  readonly type: string
  /** Repeats with a type of its own each time. */
  readonly isFree: boolean
  /** Kinds of types that it may have, as letters; see the table. */
  readonly letters: string
}

/** The signature of an operator in one version. */
export interface Signature {
  readonly inputs: SlotList
  readonly outputs: SlotList
}

/** Versions of operator sets by domain. */
export type Opsets = ReadonlyMap<string, number | bigint>

/** Slots by index; the last may stand for all that follow. */
class SlotList {
  readonly #slots: readonly Slot[]
  readonly #repeats: boolean

  constructor(text: string, variables: ReadonlyMap<string, string>) {
    const parts = text === '' ? [] : text.split(',')
    this.#repeats = /[*%]$/.test(parts.at(-1) ?? '')
    this.#slots = parts.map((part) => {
      const type = part.replace(/[*%]$/, '')
      return { type, isFree: part.endsWith('%'), letters: variables.get(type) ?? letterOf(type) }
    })
  }

  at(index: number): Slot | undefined {
    return this.#slots[index] ?? (this.#repeats ? this.#slots.at(-1) : undefined)
  }

  /** Index of the first slot of a type variable; -1 without one. */
  indexOf(type: string): number {
    return this.#slots.findIndex((slot) => slot.type === type && !slot.isFree)
  }
}

function letterOf(type: string): string {
  return { float: 'f', float16: 'h', bfloat16: 'b', double: 'd', bool: 'B', string: 's' }[type] ?? 'i'
}

const SIGNATURES = new Map<string, Signature>()

/** The signature of a node's operator; undefined for an operator that the table lacks. */
export function signatureOf(node: Operator, opsets: Opsets): Signature | undefined {
  const domain = standardDomain(node.domain)
  const versions = ownEntry(ownEntry(OPERATOR_SLOTS, domain) ?? {}, node.opType)?.split('|')
  const opset = Number(opsets.get(domain) ?? 1)
  const row = versions?.findLast((each) => Number.parseInt(each, 10) <= opset)
  if (row === undefined) return undefined
  const known = SIGNATURES.get(row)
  if (known) return known
  const signature = parseRow(row)
  SIGNATURES.set(row, signature)
  return signature
}

function parseRow(row: string): Signature {
  const [, slots = '', variables = ''] = row.split(' ')
  const letters = new Map(variables.split(',').map((each) => each.split('=') as [string, string]))
  const [inputs = '', outputs = ''] = slots.split('>')
  return { inputs: new SlotList(inputs, letters), outputs: new SlotList(outputs, letters) }
}
