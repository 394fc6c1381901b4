/**
 * Finds cmake, a C++20 compiler and a build program before a native build starts. A missing one ends in one sentence of
 * advice instead of a page of another tool's output.
 */
import { spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'

/** Root of the checkout. */
export const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Lines of a failed build to print: enough for the first compiler error, few enough to read. */
const TAIL_LINES = 40

const INSTALL =
  process.platform === 'darwin'
    ? 'xcode-select --install && brew install cmake'
    : "apt-get install g++ cmake make, or your system's equivalent"

/** Uses exactly the features of C++20 that older compilers lack. */
const PROBE_SOURCE = `
#include <bit>
#include <concepts>
#include <span>
template <std::integral T> int width(std::span<T> s) { return std::popcount(s.size()); }
int main() { int a[1] = {}; return width(std::span<int>(a)); }
`

/** One sentence on what is missing and how to install it; undefined when a build can start. */
export function missingTool() {
  if (!starts('cmake')) return advice('cmake was not found')
  if (compiler() === undefined) {
    return advice(
      'no C++20 compiler was found (looked for $CXX, g++ and clang++; GCC 11 or Clang 14 is new enough)',
    )
  }
  if (!starts('ninja') && !starts('make')) return advice('neither ninja nor make was found')
  return undefined
}

/** The compiler of a build: `$CXX`, or the first of g++ and clang++ that compiles C++20. */
export function compiler() {
  const named = process.env.CXX?.trim()
  const names = named ? [named] : ['g++', 'clang++']
  return names.find(compilesCxx20)
}

/** Number of parallel processes of a build. */
export function jobs() {
  return availableParallelism()
}

/**
 * Runs a command without printing its output. On failure prints the tail of the output and one sentence, and ends this
 * process.
 * @param {string} what - the sentence's subject, for example `Building the native addon`
 * @param {string} command
 * @param {readonly string[]} args
 */
export function runOrExit(what, command, args) {
  const result = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 28 })
  if (result.status === 0) return
  const reason = result.error?.message ?? `exit code ${result.status ?? result.signal}`
  printTailAndFail(what, `${result.stdout ?? ''}${result.stderr ?? ''}`, reason)
}

/** Prints the tail of the output of a failed command and one sentence, and ends this process. */
export function printTailAndFail(what, output, reason) {
  console.error(output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n'))
  fail(`${what} failed (${reason}); the last lines of its output are above.`)
}

/** Ends this process when a tool is missing. */
export function requireTools() {
  const sentence = missingTool()
  if (sentence !== undefined) fail(sentence)
}

/** Prints one sentence and ends this process. */
export function fail(sentence) {
  console.error(sentence)
  process.exit(1)
}

/** Seconds since a `performance.now()`, for messages. */
export function seconds(since) {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`
}

function advice(missing) {
  return `tilework builds its native addon here, but ${missing}: install it (${INSTALL}) and run "npm run build:all".`
}

function starts(command) {
  return spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0
}

function compilesCxx20(name) {
  const [command, ...flags] = name.split(/\s+/)
  const args = [...flags, '-std=c++20', '-fsyntax-only', '-x', 'c++', '-']
  return spawnSync(command, args, { input: PROBE_SOURCE, stdio: ['pipe', 'ignore', 'ignore'] }).status === 0
}
