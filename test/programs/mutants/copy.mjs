/**
 * A copy of the sources with a build folder of its own, in which mutants are built and tested. The checkout is never
 * changed.
 *
 * `-Og` compiles the kernels in half the time of `-O1`, and the tests take less than twice as long. There is no debug
 * information, so the objects of a mutant that the compiler finds equivalent are those of the original, byte for byte.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fail, printTailAndFail, ROOT } from '../../../scripts/toolchain.mjs'
import { runLimited } from './limited.mjs'
import { runTest } from './test_runs.mjs'

/** What a build of the C++ tests reads; cmake runs scripts that read tables of lib/. */
const SOURCES = [
  'CMakeLists.txt',
  'cmake',
  'fuzz/native',
  'lib',
  'native',
  'package.json',
  'scripts',
  'test/native',
]

/** The file has -O2 and more as options of its own, which come after the flags of the build type. */
const OVERRIDES = `cmake_language(DEFER DIRECTORY \${CMAKE_SOURCE_DIR} CALL set_source_files_properties
  native/reorder/reorder_portable.cc PROPERTIES COMPILE_OPTIONS "")
`
const OVERRIDES_FILE = 'mutants.cmake'

const CMAKE_OPTIONS = [
  ['TILEWORK_BUILD_TESTS', 'ON'],
  // An unused name does not make a mutant wrong.
  ['TILEWORK_WARNINGS_AS_ERRORS', 'OFF'],
  // Compiles a changed file alone.
  ['TILEWORK_UNITY', 'OFF'],
  ['CMAKE_BUILD_TYPE', 'Release'],
  ['CMAKE_CXX_FLAGS_RELEASE', '-Og'],
]

const LIBRARY = 'tilework_core'
/** A mutant may send the compiler into a loop. */
const MAX_BUILD_SECONDS = 900

export class Copy {
  #folder
  #build
  #unchanged
  /** Target of each test. */
  #targets = new Map()
  /** Seconds of each test on the original. */
  #usual = new Map()

  /** @param {string} folder - of the copy; what it has from an earlier run is used */
  constructor(folder) {
    this.#folder = folder
    this.#build = join(folder, 'build')
    this.#unchanged = join(folder, 'build-unchanged')
  }

  /**
   * Builds and runs the tests on the original; ends this process where one fails.
   *
   * @param {string} original - folder of the sources
   * @param {readonly string[]} tests
   * @returns {Promise<readonly string[]>} the tests that exist
   */
  async prepare(original, tests) {
    copySources(original, this.#folder)
    writeChanged(join(this.#folder, OVERRIDES_FILE), OVERRIDES)
    if (!existsSync(join(this.#folder, 'node_modules')))
      symlinkSync(join(ROOT, 'node_modules'), join(this.#folder, 'node_modules'))
    await this.#configure()
    const targets = await this.#allTargets()
    for (const test of tests) {
      const target = [`${test}_test`, test].find((name) => targets.has(name))
      if (target !== undefined) this.#targets.set(test, target)
    }
    const { isGood, output } = await this.#ninja([LIBRARY, ...this.#targets.values()])
    if (!isGood) printTailAndFail('Building the C++ tests', output, 'ninja')
    await this.#runOriginal()
    this.#keepBuild()
    return [...this.#targets.keys()]
  }

  /**
   * @param {import('./drawn.mjs').Mutant} mutant
   * @returns {Promise<{ outcome: string, test?: string, isLate?: boolean }>}
   */
  async try(mutant) {
    const path = join(this.#folder, mutant.file)
    const saved = join(this.#folder, 'saved')
    copyWithTimes(path, saved)
    const lines = readFileSync(path, 'utf8').split('\n')
    writeFileSync(path, lines.with(mutant.line - 1, mutant.mutated).join('\n'))
    try {
      return await this.#buildAndTest()
    } finally {
      // With the times of the original, so that nothing is compiled again. The source comes last: as long as it is not
      // the original's, the next run compiles what depends on it.
      rmSync(this.#build, { recursive: true })
      copyWithTimes(this.#unchanged, this.#build)
      copyWithTimes(saved, path)
    }
  }

  /** A test is built when it is its turn: an earlier one may have failed. */
  async #buildAndTest() {
    if (!(await this.#ninja([LIBRARY])).isGood) return { outcome: 'not compiled' }
    for (const [test, target] of this.#targets) {
      if (!(await this.#ninja([target])).isGood) return { outcome: 'not compiled' }
      if (this.#isUnchanged(join('test', 'native', target))) continue
      const { isGood, isLate } = await this.#run(test, this.#usual.get(test))
      if (!isGood) return { outcome: 'killed', test, isLate }
    }
    const objects = readdirSync(this.#build, { recursive: true }).filter((name) => name.endsWith('.o'))
    const isSame = objects.every((name) => this.#isUnchanged(name))
    return { outcome: isSame ? 'equivalent' : 'survived' }
  }

  async #configure() {
    const options = [...CMAKE_OPTIONS, ['CMAKE_PROJECT_INCLUDE', join(this.#folder, OVERRIDES_FILE)]]
    const args = ['-G', 'Ninja', '-S', this.#folder, '-B', this.#build]
    const all = [...args, ...options.map(([name, value]) => `-D${name}=${value}`)]
    const { isGood, output } = await this.#limited('cmake', all)
    if (!isGood) printTailAndFail('Configuring the C++ tests', output, 'cmake')
  }

  async #allTargets() {
    const { output } = await this.#ninja(['-t', 'targets', 'all'])
    return new Set([...output.matchAll(/^(\w+): phony$/gm)].map(([, name]) => name))
  }

  async #runOriginal() {
    for (const test of this.#targets.keys()) {
      const { isGood, output, seconds } = await this.#run(test)
      if (!isGood) printTailAndFail(`${test} on the original`, output, 'no mutants are tried')
      this.#usual.set(test, seconds)
    }
    const all = [...this.#usual].map(([test, seconds]) => `${test} ${seconds.toFixed(1)} s`)
    console.log(`original: passed (${all.join(', ')})`)
  }

  #run(test, usual) {
    return runTest(test, join(this.#build, 'test', 'native', this.#targets.get(test)), this.#folder, usual)
  }

  #keepBuild() {
    rmSync(this.#unchanged, { recursive: true, force: true })
    copyWithTimes(this.#build, this.#unchanged)
  }

  #isUnchanged(name) {
    const [now, before] = [this.#build, this.#unchanged].map((folder) => readFileSync(join(folder, name)))
    return now.equals(before)
  }

  #ninja(args) {
    return this.#limited('ninja', ['-C', this.#build, '-j1', ...args])
  }

  #limited(command, args) {
    // Compilers have process groups of their own, which ninja ends when it is asked to.
    return runLimited(command, args, { cwd: this.#folder, maxSeconds: MAX_BUILD_SECONDS, signal: 'SIGTERM' })
  }
}

/** Copies what a build of the C++ tests reads; files that are equal already keep their times. */
export function copySources(from, to) {
  for (const source of SOURCES) updateTree(join(from, source), join(to, source))
}

/** Makes a file or folder equal to another; what is equal already keeps its time. */
function updateTree(from, to) {
  const names = namesIn(from)
  if (names === undefined) return writeChanged(to, readFileSync(from))
  mkdirSync(to, { recursive: true })
  for (const name of namesIn(to)) {
    if (!names.includes(name)) rmSync(join(to, name), { recursive: true })
  }
  for (const name of names) updateTree(join(from, name), join(to, name))
}

/** The names in a folder; undefined for a file. */
function namesIn(path) {
  try {
    return readdirSync(path)
  } catch (error) {
    if (error.code === 'ENOTDIR') return undefined
    throw error
  }
}

function writeChanged(path, content) {
  mkdirSync(dirname(path), { recursive: true })
  if (!existsSync(path) || !readFileSync(path).equals(Buffer.from(content))) writeFileSync(path, content)
}

/** By cp, as Node rounds the times of files, by which ninja decides what to compile. */
function copyWithTimes(from, to) {
  const { status } = spawnSync('cp', ['-a', from, to], { stdio: 'inherit' })
  if (status !== 0) fail(`${from} could not be copied to ${to}.`)
}
