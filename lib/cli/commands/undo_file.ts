/** The file of `convert --undo`: one command per line. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { ioError } from '../text/report_error.js'
import type { ConvertFlags, UndoCommand } from './convert_options.js'

export class UndoFile {
  readonly #descriptor: number
  #isEmpty = true

  /** Replaces the file. @throws TileworkError ERR_IO, also for a file that exists with `clobber: false` */
  constructor(
    readonly path: string,
    { clobber }: Pick<ConvertFlags, 'clobber'>,
  ) {
    this.#descriptor = this.#attempt(() => openSync(path, clobber === false ? 'wx' : 'w'))
  }

  /** @throws TileworkError ERR_IO */
  add(commands: readonly UndoCommand[]): void {
    const lines = commands.map(({ command }) => `${command}\n`).join('')
    if (lines === '') return
    this.#attempt(() => writeSync(this.#descriptor, lines))
    this.#isEmpty = false
  }

  /** A note for an empty file, which is no error: casts cannot be undone, and some formats store the layout. */
  emptyNote(): string | undefined {
    return this.#isEmpty
      ? `${this.path} is empty: there is no change of layout that needs an undo command.`
      : undefined
  }

  close(): void {
    closeSync(this.#descriptor)
  }

  #attempt<Result>(write: () => Result): Result {
    try {
      return write()
    } catch (cause) {
      throw ioError(`${this.path} cannot be written`, this.path, cause)
    }
  }
}
