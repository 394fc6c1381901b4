/** Constants from other files of any format. The files stay open until the edited model is written. */
import { existsSync } from 'node:fs'
import { type DenseTensor, type OpenFile, TileworkError } from '../../index.js'
import { nearestText } from '../../internal.js'
import { openInput, type ReadChoice } from '../files/open_input.js'
import { parseSelector } from './convert_options.js'

export class ConstantFiles {
  readonly #choice: ReadChoice
  readonly #open = new Map<string, OpenFile>()

  constructor(choice: ReadChoice) {
    this.#choice = choice
  }

  /** @throws InputError around what `open` throws */
  async open(path: string): Promise<OpenFile> {
    const file = this.#open.get(path) ?? (await openInput(path, this.#choice))
    this.#open.set(path, file)
    return file
  }

  /**
   * The tensor of `FILE#TENSOR`; for FILE alone the tensor with the name of the constant, or the only tensor.
   *
   * @throws TileworkError ERR_ARGUMENT where there is none
   */
  async constant(name: string, where: string): Promise<DenseTensor> {
    const at = existsSync(where) ? -1 : endOfPath(where)
    if (at < 0) return constantNamed(await this.open(where), name, where)
    const file = await this.open(where.slice(0, at))
    const key = parseSelector(where.slice(at + 1))
    const tensor = typeof key === 'number' ? file.tensors.at(key) : file.tensors.get(key)
    if (!tensor || tensor.kind === 'dense') return file.dense(key)
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `${where} is a ${tensor.kind} tensor; constants must be dense.`,
    )
  }

  close(): void {
    for (const file of this.#open.values()) file.close()
  }
}

/** End of the path in `FILE#TENSOR`: the first # after the name of an existing file, or -1. */
function endOfPath(where: string): number {
  for (let at = where.indexOf('#'); at >= 0; at = where.indexOf('#', at + 1)) {
    if (existsSync(where.slice(0, at))) return at
  }
  return -1
}

/** @throws TileworkError ERR_ARGUMENT for a file with several tensors, none of which has the name */
export function constantNamed(file: OpenFile, name: string | null, path: string): DenseTensor {
  const { tensors } = file
  if (name !== null && tensors.get(name)) return file.dense(name)
  if (tensors.length === 1) return file.dense(0)
  const known = [...tensors].map((tensor) => tensor.name)
  const near = name === null ? '.' : nearestText(name, known)
  const message = `${path} has ${tensors.length} tensors, but none is named ${JSON.stringify(name)}${near} FILE#TENSOR selects one.`
  throw new TileworkError('ERR_ARGUMENT', message)
}
