/**
 * Node's permission model (`--permission`) guards Node's own functions. The addon calls the system itself, so every path is
 * asked for here before the addon opens, creates, replaces or removes it.
 */
import { resolve } from 'node:path'
import { TileworkError } from '../errors.js'

type Scope = 'fs.read' | 'fs.write'

/** Absent on a process without permissions; Node 20 types do not know it. */
interface WithPermission {
  readonly permission?: { has(scope: string, reference?: string): boolean }
}

/** @throws TileworkError ERR_PERMISSION for the first path that is not granted */
export function requirePermission(scope: Scope, ...paths: readonly string[]): void {
  const refused = paths.find((path) => !isGranted(scope, path))
  if (refused === undefined) return
  const path = resolve(refused)
  const [what, flag] = scope === 'fs.read' ? ['read', '--allow-fs-read'] : ['written', '--allow-fs-write']
  throw new TileworkError(
    'ERR_PERMISSION',
    `${path} may not be ${what}: Node's permission model does not grant it; start Node with ${flag}=${path}.`,
    { path },
  )
}

export function isGranted(scope: Scope, path: string): boolean {
  const { permission } = process as WithPermission
  return permission === undefined || permission.has(scope, resolve(path))
}

/** True on a process with permissions. */
export function hasPermissions(): boolean {
  return (process as WithPermission).permission !== undefined
}
