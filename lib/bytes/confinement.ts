/**
 * The folders that a job of a queue may use. A path below one of them is opened from the descriptor of that folder, so that a link
 * that appears after the path was checked cannot lead out of it. The folders belong to the asynchronous context of the job: no
 * function on the way to a file can forget to pass them on.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { relative, sep } from 'node:path'

export interface Confinement {
  /** Real paths. */
  readonly roots: readonly string[]
  /** Refuses inputs with several hard links, of which another one may lie outside. */
  readonly isSole: boolean
}

const confinements = new AsyncLocalStorage<Confinement>()

/** Runs a job whose files below the roots are opened from the descriptors of the roots. */
export function withinRoots<T>(confinement: Confinement, job: () => Promise<T>): Promise<T> {
  return confinements.run(confinement, job)
}

/** Runs a part of a job that its operator allows to follow links out of the roots. */
export function outsideRoots<T>(part: () => T): T {
  return confinements.exit(part)
}

/** A path below a root of the current job. */
export interface PlaceBelow {
  readonly root: string
  /** Relative to the root, with `/` between folders. */
  readonly name: string
  readonly isSole: boolean
}

/** Undefined outside of jobs, and for a path that is not below a root. */
export function placeBelow(path: string): PlaceBelow | undefined {
  const confinement = confinements.getStore()
  const root = confinement?.roots.find((folder) => path !== folder && isInside(path, folder))
  if (!confinement || root === undefined) return undefined
  return { root, name: relative(root, path).replaceAll(sep, '/'), isSole: confinement.isSole }
}

/** True when `path` is `folder` or lies in it. Both are real paths. */
export function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}
