/**
 * Compiles what differs between systems for macOS and Windows, with zig's Clang: `npm run test:cross`. Nothing of it is
 * linked and nothing runs; it finds what GCC on Linux accepts and Clang or another system does not. Then compares the
 * signature of sign_macho.mjs with that of zig's linker. `--target darwin-arm64`, repeatable, chooses. TILEWORK_ZIG names zig.
 */
import { execFile, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { loadCommands, signed } from '../../scripts/sign_macho.mjs'
import { fail, jobs, ROOT, seconds } from '../../scripts/toolchain.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { TARGETS, zigOf } from '../../scripts/zig_build.mjs'

const { zig, reason } = zigOf()
if (zig === undefined) {
  console.log(`cross: skipped, ${reason}`)
  process.exit(0)
}

/** Everything that asks the system for something, and kernels that use the intrinsics of one compiler. */
const FOLDERS = ['native/io', 'native/cpu', 'native/memory', 'native/parallel']
const FILES = [
  'native/error.cc',
  'native/opencl/opencl_library.cc',
  'native/reorder/run/reorder_file.cc',
  'binding/pools.cc',
  'binding/folder.cc',
]
const NEON = ['native/reorder/reorder_neon.cc', 'native/dtype/cast_neon.cc']

const started = performance.now()
const work = makeWorkFolder('cross')
const facts = join(work, 'generated', 'facts')
mkdirSync(facts, { recursive: true })
run(process.execPath, [join(ROOT, 'scripts', 'generate_facts.mjs'), facts])
const jumps = join(work, 'jumps.cc')
run(process.execPath, [join(ROOT, 'scripts', 'node_api_jumps.mjs'), jumps])
const SOURCES = {
  'darwin-arm64': [...sourcesFor('posix'), ...NEON],
  'win32-x64': [...sourcesFor('windows'), jumps],
  'win32-arm64': [jumps],
}
const { values } = parseArgs({ options: { target: { type: 'string', multiple: true } } })
for (const target of values.target ?? Object.keys(SOURCES)) await compile(target, SOURCES[target])
compareSignatures()
console.log(`cross: passed (${seconds(started)})`)

function sourcesFor(system) {
  const other = system === 'posix' ? '_windows.cc' : '_posix.cc'
  const listed = FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => name.endsWith('.cc') && !name.endsWith('_avx512.cc'))
      .map((name) => `${folder}/${name}`),
  )
  const files = [...listed, ...FILES]
  return files.filter((name) => !name.endsWith(other) && !(system === 'posix' && name.includes('/windows_')))
}

async function compile(target, sources) {
  const require = createRequire(import.meta.url)
  const headers = ['node-api-headers', 'node-addon-api'].map((name) => require(name).include_dir)
  const isWindows = target.startsWith('win32')
  const options = [
    ...['-target', TARGETS[target].zig, '-std=c++20', '-O1', '-c', '-Wall', '-Wextra', '-Werror=return-type'],
    ...[
      '-I',
      join(ROOT, 'native'),
      '-I',
      join(ROOT, 'binding'),
      '-I',
      join(work, 'generated'),
      '-D_FILE_OFFSET_BITS=64',
    ],
    ...headers.flatMap((folder) => ['-isystem', folder]),
    ...['-DNAPI_VERSION=9', '-DNAPI_CPP_EXCEPTIONS', ...(isWindows ? ['-DNAPI_EXTERN='] : ['-fPIC'])],
  ]
  const waiting = [...sources]
  await Promise.all(Array.from({ length: jobs() }, compileWaiting))
  console.log(`cross: ${sources.length} files compile for ${target} (${seconds(started)})`)

  async function compileWaiting() {
    for (let source = waiting.shift(); source !== undefined; source = waiting.shift()) {
      const path = source === jumps ? source : join(ROOT, source)
      const object = join(work, `${target}-${basename(source)}.o`)
      try {
        await promisify(execFile)(zig, ['c++', ...options, '-o', object, path])
      } catch (error) {
        console.error(error.stderr)
        fail(`${source} for ${target} failed${error.signal ? ` with ${error.signal}` : ''}.`)
      }
    }
  }
}

function run(command, args, what = basename(args[0])) {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' })
  if (status === 0) return
  console.error(stderr)
  fail(`${what} failed.`)
}

/** zig signs for arm64; without that signature and signed again the library must be the same, byte for byte. */
function compareSignatures() {
  const source = join(work, 'one.c')
  const library = join(work, 'one.dylib')
  writeFileSync(source, 'int one(void) { return 1; }\n')
  run(
    zig,
    ['cc', '-target', TARGETS['darwin-arm64'].zig, '-shared', '-o', library, source],
    'linking a library',
  )
  const bytes = readFileSync(library)
  if (!signed(unsigned(bytes), basename(library)).equals(bytes))
    fail("The signature differs from that of zig's linker.")
  console.log("cross: a signature is that of zig's linker")
}

/** The signature is the last load command and the end of the last segment. */
function unsigned(bytes) {
  const commands = loadCommands(bytes)
  const { at } = commands.at(-1)
  const start = bytes.readUInt32LE(at + 8)
  const code = Buffer.from(bytes.subarray(0, start))
  code.writeUInt32LE(commands.length - 1, 16)
  code.writeUInt32LE(code.readUInt32LE(20) - 16, 20)
  code.fill(0, at, at + 16)
  const linkedit = commands.find(({ at }) => code.toString('latin1', at + 8, at + 18) === '__LINKEDIT').at
  code.writeBigUInt64LE(BigInt(start) - code.readBigUInt64LE(linkedit + 40), linkedit + 48)
  return code
}
