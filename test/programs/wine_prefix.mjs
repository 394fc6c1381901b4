/** Wine, and the folder in which it keeps a Windows. TILEWORK_WINE names the program, WINEPREFIX the folder. */
import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { zigOf } from '../../scripts/zig_build.mjs'

export const WINE = process.env.TILEWORK_WINE || 'wine'

/** The environment of a program in Wine. */
export const WINE_ENVIRONMENT = {
  ...process.env,
  WINEPREFIX: process.env.WINEPREFIX ?? join(tmpdir(), 'tilework-wine'),
  WINEARCH: 'win64',
  WINEDEBUG: '-all',
}

/** Why nothing runs in Wine here; undefined after the folder was made. */
export function prepareWine() {
  if (spawnSync(WINE, ['--version']).status !== 0)
    return `${WINE} was not found; install Debian's packages wine and wine64`
  if (existsSync(join(WINE_ENVIRONMENT.WINEPREFIX, 'system.reg'))) return undefined
  wine('wineboot', '-i')
  // Node refuses Windows 7, which is Wine's default.
  wine('winecfg', '/v', 'win10')
  return undefined
}

/** The bundler of vitest asks for random numbers by a function that Wine 8 has not. @returns why it is missing */
export function addProcessPrng() {
  const library = join(WINE_ENVIRONMENT.WINEPREFIX, 'drive_c', 'windows', 'system32', 'bcryptprimitives.dll')
  if (existsSync(library)) return undefined
  const { zig, reason } = zigOf()
  if (zig === undefined) return `Wine lacks bcryptprimitives.dll, and ${reason}`
  const source = join(WINE_ENVIRONMENT.WINEPREFIX, 'process_prng.c')
  writeFileSync(
    source,
    `__declspec(dllimport) unsigned char __stdcall SystemFunction036(void *, unsigned long);
__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *to, unsigned long long size) {
  return SystemFunction036(to, (unsigned long)size);
}
`,
  )
  const options = ['-target', 'x86_64-windows-gnu', '-O2', '-shared', '-o', library, source, '-ladvapi32']
  const { status, stderr } = spawnSync(zig, ['cc', ...options], { encoding: 'utf8' })
  return status === 0 ? undefined : `bcryptprimitives.dll could not be made: ${stderr}`
}

function wine(...args) {
  spawnSync(WINE, args, { env: WINE_ENVIRONMENT, stdio: 'ignore' })
}
