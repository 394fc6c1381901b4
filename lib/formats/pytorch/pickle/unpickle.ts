/** Reads one pickle: opcode by opcode to STOP. */
import { type PickleBytes, type PickleContext, PickleMachine } from './machine.js'
import { OPCODES } from './opcodes.js'
import type { PickleValue } from './values.js'

export interface Unpickled {
  readonly value: PickleValue
  /** The byte after STOP, in the bytes of the pickle. */
  readonly end: number
}

/** @throws FileFault for the first thing that is not data, PickleCut where the bytes end before STOP */
export function unpickle(pickle: PickleBytes, context: PickleContext): Unpickled {
  const machine = new PickleMachine(pickle, context)
  for (;;) {
    const code = machine.nextOpcode()
    const opcode = OPCODES[code]
    if (opcode?.run === undefined) throw machine.fault('ERR_UNSUPPORTED', `${nameOf(code)} is not allowed`)
    opcode.run(machine)
    if (code === STOP) return { value: machine.pop(), end: machine.position }
  }
}

const STOP = '.'.charCodeAt(0)

function nameOf(code: number): string {
  return OPCODES[code]?.name ?? `the unknown opcode 0x${code.toString(16).padStart(2, '0')}`
}
