/**
 * The opcodes of pickles, by the names of Python's `pickletools`. Those without `run` are known and refused: they import
 * names, call what they import, need another pickle, or occur in no file of torch.
 */
import { MAX_PROTOCOL } from '../schema.js'
import { build, newObject, reduce } from './calls.js'
import { describeValue, OBJECT_BYTES, type PickleMachine } from './machine.js'
import { PickleDict, PickleList, PickleSet, PickleTuple, type PickleValue, TensorValue } from './values.js'

interface Opcode {
  readonly name: string
  readonly run?: (machine: PickleMachine) => void
}

type Run = (machine: PickleMachine) => void

/** Bytes of a reference in a list or a tuple, and of an entry of a map. */
const REFERENCE_BYTES = 16
const ENTRY_BYTES = 48

const nothing: Run = () => undefined

const ROWS: readonly [code: string, name: string, run?: Run][] = [
  ['\x80', 'PROTO', (machine) => checkProtocol(machine)],
  ['\x95', 'FRAME', (machine) => machine.skip(8)],
  ['.', 'STOP', nothing],
  ['(', 'MARK', (machine) => machine.mark()],
  ['N', 'NONE', (machine) => machine.push(null)],
  ['\x88', 'NEWTRUE', (machine) => machine.push(true)],
  ['\x89', 'NEWFALSE', (machine) => machine.push(false)],
  ['K', 'BININT1', (machine) => machine.push(machine.u8())],
  ['M', 'BININT2', (machine) => machine.push(machine.u16())],
  ['J', 'BININT', (machine) => machine.push(machine.i32())],
  ['\x8a', 'LONG1', (machine) => machine.push(machine.integer(machine.u8()))],
  ['G', 'BINFLOAT', (machine) => machine.push(machine.f64())],
  ['X', 'BINUNICODE', (machine) => machine.push(machine.text(machine.u32()))],
  ['\x8c', 'SHORT_BINUNICODE', (machine) => machine.push(machine.text(machine.u8()))],
  ['U', 'SHORT_BINSTRING', (machine) => machine.push(machine.text(machine.u8()))],
  ['C', 'SHORT_BINBYTES', (machine) => machine.push(machine.data(machine.u8()))],
  [']', 'EMPTY_LIST', (machine) => pushNew(machine, new PickleList())],
  ['}', 'EMPTY_DICT', (machine) => pushNew(machine, new PickleDict())],
  [')', 'EMPTY_TUPLE', (machine) => pushNew(machine, new PickleTuple([]))],
  ['\x8f', 'EMPTY_SET', (machine) => pushNew(machine, new PickleSet([]))],
  ['0', 'POP', (machine) => machine.pop()],
  ['t', 'TUPLE', (machine) => pushTuple(machine, machine.popMark())],
  ['\x85', 'TUPLE1', (machine) => pushTuple(machine, popMany(machine, 1))],
  ['\x86', 'TUPLE2', (machine) => pushTuple(machine, popMany(machine, 2))],
  ['\x87', 'TUPLE3', (machine) => pushTuple(machine, popMany(machine, 3))],
  ['a', 'APPEND', (machine) => append(machine, [machine.pop()])],
  ['e', 'APPENDS', (machine) => append(machine, machine.popMark())],
  ['s', 'SETITEM', (machine) => setItems(machine, popMany(machine, 2))],
  ['u', 'SETITEMS', (machine) => setItems(machine, machine.popMark())],
  ['q', 'BINPUT', (machine) => machine.remember(machine.u8())],
  ['r', 'LONG_BINPUT', (machine) => machine.remember(machine.u32())],
  ['\x94', 'MEMOIZE', (machine) => machine.remember()],
  ['h', 'BINGET', (machine) => machine.recall(machine.u8())],
  ['j', 'LONG_BINGET', (machine) => machine.recall(machine.u32())],
  ['c', 'GLOBAL', (machine) => machine.pushGlobal(machine.line(), machine.line())],
  ['\x93', 'STACK_GLOBAL', (machine) => stackGlobal(machine)],
  ['Q', 'BINPERSID', (machine) => loadStorage(machine)],
  ['R', 'REDUCE', (machine) => call(machine, reduce)],
  ['\x81', 'NEWOBJ', (machine) => call(machine, newObject)],
  ['b', 'BUILD', (machine) => buildTop(machine)],
  ['i', 'INST', (machine) => refuseInst(machine)],
  ['o', 'OBJ'],
  ['\x82', 'EXT1'],
  ['\x83', 'EXT2'],
  ['\x84', 'EXT4'],
  ['\x92', 'NEWOBJ_EX'],
  ['P', 'PERSID'],
  ['L', 'LONG'],
  ['\x8b', 'LONG4'],
  ['I', 'INT'],
  ['F', 'FLOAT'],
  ['S', 'STRING'],
  ['T', 'BINSTRING'],
  ['V', 'UNICODE'],
  ['\x8d', 'BINUNICODE8'],
  ['B', 'BINBYTES'],
  ['\x8e', 'BINBYTES8'],
  ['\x96', 'BYTEARRAY8'],
  ['\x97', 'NEXT_BUFFER'],
  ['\x98', 'READONLY_BUFFER'],
  ['1', 'POP_MARK'],
  ['2', 'DUP'],
  ['d', 'DICT'],
  ['l', 'LIST'],
  ['p', 'PUT'],
  ['g', 'GET'],
  ['\x90', 'ADDITEMS'],
  ['\x91', 'FROZENSET'],
]

/** By code. */
export const OPCODES: readonly (Opcode | undefined)[] = Array.from({ length: 256 }, (_, code) => {
  const row = ROWS.find(([character]) => character.charCodeAt(0) === code)
  return row && { name: row[1], ...(row[2] && { run: row[2] }) }
})

function checkProtocol(machine: PickleMachine): void {
  const protocol = machine.u8()
  if (protocol < 2 || protocol > MAX_PROTOCOL) {
    throw machine.fault(
      'ERR_UNSUPPORTED',
      `the protocol is ${protocol}; protocols 2 to ${MAX_PROTOCOL} are read`,
    )
  }
}

function pushNew(machine: PickleMachine, value: PickleValue): void {
  machine.spend(OBJECT_BYTES)
  machine.push(value)
}

function pushTuple(machine: PickleMachine, items: PickleValue[]): void {
  machine.spend(OBJECT_BYTES + REFERENCE_BYTES * items.length)
  machine.push(new PickleTuple(items))
}

function popMany(machine: PickleMachine, count: number): PickleValue[] {
  const items: PickleValue[] = []
  for (let index = 0; index < count; index++) items.push(machine.pop())
  return items.reverse()
}

function append(machine: PickleMachine, items: readonly PickleValue[]): void {
  const list = machine.peek()
  if (!(list instanceof PickleList)) {
    throw machine.fault('ERR_HEADER', `items are appended to ${describeValue(list)}; it must be a list`)
  }
  machine.spend(REFERENCE_BYTES * items.length)
  for (const item of items) list.items.push(item)
}

function setItems(machine: PickleMachine, items: readonly PickleValue[]): void {
  const dict = machine.peek()
  if (!(dict instanceof PickleDict)) {
    throw machine.fault('ERR_HEADER', `items are set in ${describeValue(dict)}; it must be a dict`)
  }
  if (items.length % 2 !== 0) throw machine.fault('ERR_HEADER', 'a key of a dict has no value')
  machine.spend(ENTRY_BYTES * items.length)
  for (let index = 0; index < items.length; index += 2) {
    const key = items[index]!
    if (!isHashable(key)) throw machine.fault('ERR_HEADER', `a dict has ${describeValue(key)} as a key`)
    dict.set(key, items[index + 1]!)
  }
}

function isHashable(key: PickleValue): boolean {
  return !(
    key instanceof PickleList ||
    key instanceof PickleDict ||
    key instanceof PickleSet ||
    key instanceof TensorValue
  )
}

function stackGlobal(machine: PickleMachine): void {
  const name = machine.pop()
  machine.pushGlobal(machine.pop(), name)
}

/** Names the class, which says more than the opcode. */
function refuseInst(machine: PickleMachine): never {
  throw machine.fault('ERR_UNSUPPORTED', `INST of ${machine.line()}.${machine.line()} is not allowed`)
}

function loadStorage(machine: PickleMachine): void {
  const id = machine.pop()
  if (!(id instanceof PickleTuple)) {
    throw machine.fault('ERR_HEADER', `a persistent id is ${describeValue(id)}; it must be a tuple`)
  }
  pushNew(machine, machine.context.storageOf(id.items, machine.offset))
}

function call(machine: PickleMachine, run: typeof reduce): void {
  const args = machine.pop()
  const called = machine.pop()
  if (!(args instanceof PickleTuple)) {
    throw machine.fault(
      'ERR_HEADER',
      `the arguments of a call are ${describeValue(args)}; they must be a tuple`,
    )
  }
  machine.spend(2 * OBJECT_BYTES)
  machine.push(run(machine, called, args.items))
}

function buildTop(machine: PickleMachine): void {
  const state = machine.pop()
  build(machine, machine.peek(), state)
}
