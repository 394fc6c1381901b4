/** What REDUCE, NEWOBJ and BUILD make: each function of the allow-list is a row here, and nothing else can be called. */
import { describeValue, OBJECT_BYTES, type PickleMachine } from './machine.js'
import { rebuild } from './rebuild.js'
import {
  type GlobalKind,
  PickleComplex,
  PickleDevice,
  PickleDict,
  PickleGlobal,
  PickleLayout,
  PickleList,
  PickleObject,
  PickleOpaque,
  PickleSet,
  PickleTuple,
  type PickleValue,
  TensorValue,
} from './values.js'

type Arguments = readonly PickleValue[]
type Call = (machine: PickleMachine, args: Arguments, global: PickleGlobal) => PickleValue

/** The callable kinds. Undefined as a result: the arguments have another form. */
const CALLS: Partial<Record<GlobalKind, (...of: Parameters<Call>) => PickleValue | undefined>> = {
  dict: (machine, [pairs]) => dictOf(machine, pairs),
  counter: (machine, [counts]) => dictOf(machine, counts),
  size: (_, [items]) => (items instanceof PickleTuple ? items : undefined),
  device: (_, [type, index]) => deviceOf(type, index),
  encode: (machine, [text, codec]) => encoded(machine, text, codec),
  bytes: (_, args) => (args.length === 0 ? new Uint8Array(0) : undefined),
  bytearray: (machine, args) => byteArrayOf(machine, args),
  set: (machine, args) => setOf(machine, args),
  complex: (_, [real, imaginary]) =>
    typeof real === 'number' && typeof imaginary === 'number'
      ? new PickleComplex(real, imaginary)
      : undefined,
  layout: (_, [name]) => (typeof name === 'string' ? new PickleLayout(name) : undefined),
  rebuild: (machine, args, global) => rebuild(machine, global, args),
  // Restores the element type of a list, which is its items all the same.
  'script-function': (_, [value]) => value,
}

/** Calls a function of the allow-list. @throws FileFault for anything else, and for other arguments than torch writes */
export function reduce(machine: PickleMachine, called: PickleValue, args: Arguments): PickleValue {
  if (called instanceof PickleOpaque) return called
  const run = called instanceof PickleGlobal ? CALLS[called.kind] : undefined
  if (!run) throw machine.fault('ERR_UNSUPPORTED', `a call of ${describeValue(called)} is not allowed`)
  const result = run(machine, args, called as PickleGlobal)
  if (result !== undefined) return result
  throw machine.fault('ERR_HEADER', `${describeValue(called)} has arguments that torch does not write`)
}

/** Makes an object of a class. @throws FileFault unless it is a dict, or a class of TorchScript */
export function newObject(machine: PickleMachine, called: PickleValue, args: Arguments): PickleValue {
  if (called instanceof PickleOpaque) return called
  const kind = called instanceof PickleGlobal ? called.kind : undefined
  if (kind === 'script-class') return new PickleObject((called as PickleGlobal).name)
  const isDict = kind === 'dict' || kind === 'counter'
  const made = isDict && args.length === 0 ? new PickleDict() : undefined
  if (made) return made
  throw machine.fault('ERR_UNSUPPORTED', `a new object of ${describeValue(called)} is not allowed`)
}

/**
 * Gives an object its state. Of an OrderedDict that is the `_metadata` of a state dict, of a Parameter what the program noted on
 * it; both are not shown.
 */
export function build(machine: PickleMachine, target: PickleValue, state: PickleValue): void {
  if (target instanceof PickleObject) {
    target.state = state
    return
  }
  const takesState =
    target instanceof PickleDict ||
    target instanceof PickleOpaque ||
    (target instanceof TensorValue && target.isParameter)
  if (!takesState)
    throw machine.fault('ERR_UNSUPPORTED', `a state for ${describeValue(target)} is not allowed`)
}

/** Bytes of an entry of a map. */
const ENTRY_BYTES = 96

/** Nothing, another dict, or a list of pairs, as Python 2 wrote. */
function dictOf(machine: PickleMachine, from: PickleValue | undefined): PickleDict | undefined {
  const made = new PickleDict()
  if (from === undefined) return made
  if (from instanceof PickleDict) {
    machine.spend(ENTRY_BYTES * from.entries.size)
    for (const [key, value] of from.entries) made.set(key, value)
    return made
  }
  if (!(from instanceof PickleList)) return undefined
  machine.spend(ENTRY_BYTES * from.items.length)
  for (const pair of from.items) {
    const items = pair instanceof PickleTuple || pair instanceof PickleList ? pair.items : []
    const [key, value] = items
    if (items.length !== 2 || typeof key !== 'string') return undefined
    made.set(key, value!)
  }
  return made
}

function deviceOf(type: PickleValue | undefined, index: PickleValue | undefined): PickleDevice | undefined {
  if (typeof type !== 'string') return undefined
  if (index === undefined || index === null) return new PickleDevice(type)
  return typeof index === 'number' ? new PickleDevice(`${type}:${index}`) : undefined
}

/** Protocol 2 has no bytes: it writes them as a text of their codes. */
function encoded(
  machine: PickleMachine,
  text: PickleValue | undefined,
  codec: PickleValue | undefined,
): Uint8Array | undefined {
  if (typeof text !== 'string' || (codec !== 'latin1' && codec !== 'latin-1')) return undefined
  machine.spend(OBJECT_BYTES + text.length)
  const bytes = Buffer.from(text, 'latin1')
  return bytes.toString('latin1') === text ? new Uint8Array(bytes) : undefined
}

function byteArrayOf(machine: PickleMachine, args: Arguments): Uint8Array | undefined {
  const [from, codec] = args
  if (args.length === 0) return new Uint8Array(0)
  return from instanceof Uint8Array && codec === undefined ? from : encoded(machine, from, codec)
}

function setOf(machine: PickleMachine, args: Arguments): PickleSet | undefined {
  const [from] = args
  if (args.length === 0) return new PickleSet([])
  if (!(from instanceof PickleList || from instanceof PickleTuple)) return undefined
  machine.spend(OBJECT_BYTES * from.items.length)
  return new PickleSet([...from.items])
}
