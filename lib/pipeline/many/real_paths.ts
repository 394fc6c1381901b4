/** Real paths of many files, one look at each file: most share their folders, which are resolved once. */
import { lstatSync, realpathSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

export interface Located {
  /** Absolute, without links; of a file that cannot be looked at the absolute path as it is written. */
  readonly real: string
  /** What is there, links followed; undefined when nothing could be seen. */
  readonly stats: Stats | undefined
}

/**
 * Looks synchronously: the call takes some microseconds, and its asynchronous form ten times as long, which a list of a
 * hundred thousand files would feel.
 */
export class RealPaths {
  readonly #folders = new Map<string, string>()

  locate(path: string): Located {
    const absolute = resolve(path)
    const real = (): string => join(this.folder(dirname(absolute)), basename(absolute))
    try {
      const stats = lstatSync(absolute, { throwIfNoEntry: false })
      if (stats?.isSymbolicLink()) return { real: realpathSync(absolute), stats: statSync(absolute) }
      return { real: real(), stats }
    } catch {
      return { real: real(), stats: undefined }
    }
  }

  /** The real path of a folder; of one that does not exist yet, the real path of the nearest that does, and the rest. */
  folder(path: string): string {
    const known = this.#folders.get(path)
    if (known !== undefined) return known
    const real = this.#resolveFolder(path)
    this.#folders.set(path, real)
    return real
  }

  #resolveFolder(path: string): string {
    try {
      return realpathSync(path)
    } catch {
      const parent = dirname(path)
      return parent === path ? path : join(this.folder(parent), basename(path))
    }
  }
}

/** True when `path` is `folder` or lies in it. Both are real paths. */
export function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}
