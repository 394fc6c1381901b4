/**
 * Finds the binary of the addon and loads it. Many things can be wrong with a binary on another machine, so every attempt
 * is kept, and the error starts with the one that matters and ends in advice.
 *
 * node-gyp-build chooses the binary in the package folder. It is not part of a user's bundle, and it reports no reasons, so
 * other folders are searched here, in the same order: `build/Release`, `build/Debug`, `prebuilds/<platform>-<arch>`, the
 * folder itself. The names are those of prebuildify: `tilework[.glibc|.musl].node`. Last comes the package that holds the
 * binary for this platform alone, `@tilework/<platform>-<arch>[-glibc|-musl]`.
 */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { TileworkError } from '../errors.js'
import { codeFolders, packageRoot } from '../package_root.js'
import { hasPermissions } from './permission.js'
import type { NativeAddon } from './types.js'

/** Names a folder that holds the binary or `prebuilds/`; then no other place is searched. */
const VARIABLE = 'TILEWORK_PREBUILD'

/** A place where the addon was looked for, and why it was not loaded from there. */
interface Attempt {
  readonly path: string
  readonly reason: string
  /** What the loader threw; absent where there was nothing to load. */
  readonly cause?: unknown
}

/**
 * @param folders - searched one after the other
 * @throws TileworkError ERR_NATIVE_LOAD with every attempt, the decisive one first, and advice
 */
export function loadAddon(folders: readonly string[] = searchedFolders()): NativeAddon {
  const attempts: Attempt[] = []
  for (const path of candidatesIn(folders, attempts)) {
    try {
      refuseTruncated(path)
      return requireFrom(path)(path) as NativeAddon
    } catch (cause) {
      attempts.push({ path, reason: reasonOf(cause), cause })
    }
  }
  throw loadError(attempts, folders)
}

/**
 * `createRequire`, rooted at the binary itself because a bundle in CommonJS has no `import.meta.url`. Taken from the
 * process, because webpack replaces an imported `createRequire` by undefined.
 */
function requireFrom(path: string): NodeJS.Require {
  return process.getBuiltinModule('node:module').createRequire(path)
}

/** Each path once. Folders are searched only when the binary that node-gyp-build chose does not load. */
function* candidatesIn(folders: readonly string[], attempts: Attempt[]): Generator<string> {
  const chosen = chosenByNodeGypBuild(folders[0])
  if (chosen !== undefined) yield chosen
  for (const path of binariesIn(folders, attempts)) {
    if (path !== chosen) yield path
  }
}

/** Undefined in a bundle, which has no node-gyp-build, and where it finds no binary for this platform. */
function chosenByNodeGypBuild(folder: string | undefined): string | undefined {
  if (folder === undefined || !exists(join(folder, 'package.json'))) return undefined
  // Without LIBC it takes musl systems other than Alpine for glibc.
  process.env.LIBC ??= ownLibc()
  try {
    const nodeGypBuild = requireFrom(join(folder, 'package.json'))('node-gyp-build') as {
      resolve(folder: string): string
    }
    return nodeGypBuild.resolve(folder)
  } catch {
    return undefined
  }
}

const NOT_INSTALLED = 'is not installed'

function searchedFolders(): string[] {
  const named = process.env[VARIABLE]
  if (named) return [named]
  const root = packageRoot()
  // Beside a bundle, and beside the program where that is a single executable.
  return [...new Set([...(root ? [root] : []), ...codeFolders(), dirname(process.execPath)])]
}

/** Paths of binaries for this platform, the best first. Binaries for other platforms go into `attempts`. */
function* binariesIn(folders: readonly string[], attempts: Attempt[]): Generator<string> {
  for (const folder of folders) {
    const known = attempts.length
    const paths = [
      ...binariesOf(join(folder, 'build', 'Release'), attempts),
      ...binariesOf(join(folder, 'build', 'Debug'), attempts),
      ...prebuiltIn(folder, attempts),
      ...binariesOf(folder, attempts),
      ...platformPackageOf(folder, attempts),
    ]
    const isEmpty = paths.length === 0 && attempts.length === known
    if (isEmpty) attempts.push({ path: folder, reason: emptyReason(folder) })
    yield* paths
  }
}

/** The package with the binary for this platform; npm installs the one whose `os`, `cpu` and `libc` fit. */
function platformPackage(): string {
  const libc = process.platform === 'linux' ? `-${ownLibc()}` : ''
  return `@tilework/${process.platform}-${process.arch}${libc}`
}

function* platformPackageOf(folder: string, attempts: Attempt[]): Generator<string> {
  const manifest = join(folder, 'package.json')
  if (!exists(manifest)) return
  const name = platformPackage()
  try {
    yield* binariesOf(dirname(requireFrom(manifest).resolve(`${name}/package.json`)), attempts)
  } catch {
    if (readFileSync(manifest, 'utf8').includes(`"${name}"`)) {
      attempts.push({ path: name, reason: NOT_INSTALLED })
    }
  }
}

/** False also for a path that Node's permission model hides: Node 20 throws there. */
function exists(path: string): boolean {
  try {
    return existsSync(path)
  } catch {
    return false
  }
}

function emptyReason(folder: string): string {
  return exists(folder) ? 'holds no tilework.node, build/Release or prebuilds' : 'does not exist'
}

function* prebuiltIn(folder: string, attempts: Attempt[]): Generator<string> {
  const prebuilds = join(folder, 'prebuilds')
  const platforms = namesIn(prebuilds)
  const own = platforms.filter(isOwnPlatform)
  if (platforms.length > 0 && own.length === 0) {
    attempts.push({ path: prebuilds, reason: `holds binaries for ${platforms.join(', ')} only` })
  }
  for (const platform of own) yield* binariesOf(join(prebuilds, platform), attempts)
}

/** For example `linux-x64`, or `darwin-x64+arm64` for a binary of several architectures. */
function isOwnPlatform(name: string): boolean {
  const [platform, architectures = ''] = name.split('-')
  return platform === process.platform && architectures.split('+').includes(process.arch)
}

function* binariesOf(folder: string, attempts: Attempt[]): Generator<string> {
  for (const name of namesIn(folder)) {
    if (!/^tilework\b.*\.node$/.test(name)) continue
    const path = join(folder, name)
    const libc = /\.(glibc|musl)\./.exec(name)?.[1]
    if (libc !== undefined && libc !== ownLibc()) {
      attempts.push({ path, reason: `is built for ${libc}; this process runs on ${ownLibc()}` })
    } else yield path
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}

/**
 * The dynamic loader of this program identifies its C library: `/lib/ld-musl-x86_64.so.1`. A process report knows it too,
 * and takes more time and memory than opening a model.
 */
function ownLibc(): 'glibc' | 'musl' {
  try {
    return loaderOf(process.execPath).includes('/ld-musl-') ? 'musl' : 'glibc'
  } catch {
    // A program that cannot be read most likely runs on the common library.
    return 'glibc'
  }
}

const PROGRAM_INTERPRETER = 3

/** What a 64-bit ELF program names as its dynamic loader, which lies anywhere in the file after the tools of wheels. */
function loaderOf(path: string): string {
  const header = readRange(path, 0, ELF_HEADER_BYTES)
  const size = header.readUInt16LE(0x36)
  const segments = readRange(path, Number(header.readBigUInt64LE(0x20)), size * header.readUInt16LE(0x38))
  for (let at = 0; at < segments.length; at += size) {
    if (segments.readUInt32LE(at) !== PROGRAM_INTERPRETER) continue
    const start = Number(segments.readBigUInt64LE(at + 0x08))
    return readRange(path, start, Number(segments.readBigUInt64LE(at + 0x20))).toString('latin1')
  }
  return ''
}

/** Bytes of the file header of a 64-bit ELF library. */
const ELF_HEADER_BYTES = 64

/**
 * The system maps a library by its headers, so one that lost its end (a copy that ran out of disk) would kill the process
 * with SIGBUS. An ELF library ends with its table of sections.
 */
function refuseTruncated(path: string): void {
  const header = readRange(path, 0, ELF_HEADER_BYTES)
  const isElf64 = header.readUInt32BE(0) === 0x7f454c46 && header[4] === 2
  if (!isElf64) return
  const needed = Number(header.readBigUInt64LE(0x28)) + header.readUInt16LE(0x3a) * header.readUInt16LE(0x3c)
  const { size } = statSync(path)
  if (size < needed) throw new Error(`file too short: ${size} of ${needed} bytes`)
}

/** Bytes of a file; zeros beyond its end. */
function readRange(path: string, start: number, byteLength: number): Buffer {
  const bytes = Buffer.alloc(byteLength)
  const descriptor = openSync(path, 'r')
  try {
    readSync(descriptor, bytes, 0, byteLength, start)
  } finally {
    closeSync(descriptor)
  }
  return bytes
}

/** The code of Node's error where its permission model, or `--no-addons`, forbids addons. */
const NO_ADDONS = 'ERR_DLOPEN_DISABLED'

function codeOf(cause: unknown): unknown {
  return (Object(cause) as { code?: unknown }).code
}

/** What a failed load means. The loader's own message stays, and an explanation precedes it where the cause is known. */
function reasonOf(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause)
  const said = message.split('\n')[0]!
  if (codeOf(cause) === NO_ADDONS) return `may not be loaded (${said})`
  const glibc = /GLIBC_([\d.]+)'? not found/.exec(message)?.[1]
  if (glibc !== undefined) return `needs glibc ${glibc} or newer; this system has ${glibcVersion()} (${said})`
  if (/GLIBCXX_|CXXABI_/.test(message)) return `needs a newer libstdc++ (${said})`
  if (
    /invalid ELF header|exec format error|file too short|wrong ELF class|not a mach-o|incompatible architecture|not a valid Win32 application|bad EXE format/i.test(
      message,
    )
  ) {
    return `is not a shared library for ${process.platform}-${process.arch} (${said})`
  }
  if (/NODE_MODULE_VERSION|did not self-register/.test(message)) {
    return `is built for another runtime than Node ${process.versions.node} (${said})`
  }
  return `could not be loaded (${said})`
}

function glibcVersion(): string {
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } }
  return header?.glibcVersionRuntime ?? 'none'
}

function loadError(attempts: readonly Attempt[], folders: readonly string[]): TileworkError {
  const [decisive, ...others] = [...attempts].sort((one, other) => weightOf(one) - weightOf(other))
  const target = `${process.platform}-${process.arch}, Node ${process.versions.node}`
  const lines = [
    `The native addon of tilework cannot be loaded (${target}): ${decisive!.path} ${decisive!.reason}.`,
    ...others.map(({ path, reason }) => `  also tried: ${path} ${reason}`),
    `  ${adviceFor(decisive!, folders)}`,
  ]
  return new TileworkError('ERR_NATIVE_LOAD', lines.join('\n'), { cause: decisive!.cause })
}

/** A binary that failed says more than one for another platform, and that more than an empty folder. */
function weightOf({ reason, cause }: Attempt): number {
  if (cause !== undefined) return 0
  return /^(is|holds binaries)/.test(reason) ? 1 : 2
}

/** npm leaves optional packages out with `--omit=optional`, and those of other systems than the one that it runs on. */
function installCommand(): string {
  const libc = process.platform === 'linux' ? ` --libc=${ownLibc()}` : ''
  return `npm install --include=optional --os=${process.platform} --cpu=${process.arch}${libc} tilework`
}

function adviceFor({ path, reason, cause }: Attempt, folders: readonly string[]): string {
  const [root] = folders
  if (codeOf(cause) === NO_ADDONS) {
    return hasPermissions()
      ? "Node's permission model forbids addons: start Node with --allow-addons beside --permission."
      : 'Start Node without --no-addons.'
  }
  if (process.env[VARIABLE] === root) {
    return `Set ${VARIABLE} to the folder that holds tilework.node (an installed package: node_modules/${platformPackage()}), or unset it.`
  }
  if (path.includes('.asar')) return 'Unpack *.node files from the archive (electron-builder: asarUnpack).'
  if (exists(join(root!, 'CMakeLists.txt'))) {
    return 'Run "npm run build:all" in the checkout; it needs a C++ compiler and cmake.'
  }
  if (reason === NOT_INSTALLED) {
    return `Install it: "${installCommand()}". A lock file that was made on another system may leave it out: remove node_modules and the lock file first.`
  }
  const isInstalled = exists(join(root!, 'package.json'))
  if (isInstalled || cause !== undefined) {
    return 'Install tilework again on this machine ("npm install tilework"): its package holds one binary per platform. For a package of your own: "npm run prebuild" before "npm pack".'
  }
  return `A bundle needs the binary: copy node_modules/${platformPackage()}/tilework.node beside it, or set ${VARIABLE} to the folder that holds it.`
}
