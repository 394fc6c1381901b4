/**
 * Finds and loads the addon. Nothing else in `lib/` knows how it is loaded.
 * A failure ends in advice: what was looked for, what is needed, which command to run.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import type { NativeAddon } from './types.js'

/** More threads than any machine that runs Node has; a typing error should not start a million. */
const MAX_THREADS = 1024

let loaded: NativeAddon | undefined

/** The addon, loaded on first use. Throws ERR_NATIVE_LOAD with advice. */
export function native(): NativeAddon {
  loaded ??= load()
  return loaded
}

function load(): NativeAddon {
  const require = createRequire(import.meta.url)
  const packageRoot = fileURLToPath(new URL('../..', import.meta.url))
  // node-gyp-build recognises musl by Alpine's release file alone.
  process.env.LIBC ??= isMusl() ? 'musl' : 'glibc'
  try {
    return require('node-gyp-build')(packageRoot) as NativeAddon
  } catch (cause) {
    throw new TileworkError(
      'ERR_NATIVE_LOAD',
      `The native addon of tilework could not be loaded for ${process.platform}-${process.arch} (Node ${process.versions.node}): ` +
        `no prebuilt binary fits and none was built in ${packageRoot}. ` +
        'In a checkout run "npm run build:all" (it needs a C++ compiler and cmake); ' +
        'in an application reinstall tilework, and unpack *.node files if they are inside an archive.',
      { cause },
    )
  }
}

/** How much of a program holds the name of its dynamic loader: it stands behind the headers, in the first page. */
const PROGRAM_HEAD_BYTES = 4096

/**
 * The loader that runs this program tells its C library: `/lib/ld-musl-x86_64.so.1`. A process report knows it too, and
 * takes longer to make and more memory than opening a model.
 */
function isMusl(): boolean {
  if (process.platform !== 'linux') return false
  try {
    const descriptor = openSync(process.execPath, 'r')
    const head = Buffer.alloc(PROGRAM_HEAD_BYTES)
    readSync(descriptor, head)
    closeSync(descriptor)
    return head.includes('/ld-musl-')
  } catch {
    // Who may not read the program runs on what most do.
    return false
  }
}

/** Threads that kernels use: from CPU affinity and cgroup quota, or TILEWORK_THREADS, or `setThreads`. */
export function threads(): number {
  return native().threads()
}

/**
 * Sets how many threads kernels use, for the whole process. Running jobs keep theirs.
 *
 * @throws TileworkError ERR_ARGUMENT for anything but a whole number from 1 to 1024
 */
export function setThreads(count: number): void {
  if (!Number.isInteger(count) || count < 1 || count > MAX_THREADS) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `threads must be a whole number from 1 to ${MAX_THREADS}; it is ${valueText(count)}.`,
    )
  }
  native().setThreads(count)
}
