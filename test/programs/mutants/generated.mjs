/** Mutants of a file by universalmutator, a tool that mutates any language by rules of regular expressions. */
import { execFile, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

/** Another version may have other rules, and so other mutants for the same seed. */
export const TOOL = { name: 'universalmutator', version: '1.14.1' }

const VERSION_PROGRAM = `from importlib.metadata import version; print(version('${TOOL.name}'))`
const MUTATE_PROGRAM = 'from universalmutator.genmutants import main; main()'

/**
 * A Python that has the tool.
 *
 * @param {string} folder - for a virtual environment
 * @param {string} [given] - a Python to use instead
 * @returns {{ python?: string, reason?: string }} one of the two
 */
export function findTool(folder, given) {
  const python = given ?? join(folder, 'bin', 'python')
  if (given === undefined) {
    const wanted = `${TOOL.name}==${TOOL.version}`
    const isInstalled =
      succeeds('python3', ['-m', 'venv', folder]) &&
      succeeds(python, ['-m', 'pip', 'install', '--quiet', wanted])
    if (!isInstalled) return { reason: `${wanted} could not be installed` }
  }
  const { stdout, error } = spawnSync(python, ['-c', VERSION_PROGRAM], { encoding: 'utf8' })
  if (error) return { reason: `${python} cannot be run (${error.code})` }
  const found = stdout.trim()
  if (found === TOOL.version) return { python }
  return { reason: `${python} has ${found || 'no'} ${TOOL.name}; expected ${TOOL.version}` }
}

/**
 * @param {string} python
 * @param {string} source - path of the file
 * @param {string} scratch - a folder for the mutants
 * @returns {Promise<Map<number, string[]>>} by number of the line, from 0, what replaces it: one line or two
 */
export async function mutantsOf(python, source, scratch) {
  const folder = join(scratch, basename(source))
  mkdirSync(folder, { recursive: true })
  const args = ['-c', MUTATE_PROGRAM, source, 'cpp', '--noCheck', '--mutantDir', folder]
  const { stdout } = await execute(python, args, { cwd: scratch, maxBuffer: 1 << 28 })
  // One line for each mutant, in the order of their files.
  const changed = [...stdout.matchAll(/^PROCESSING MUTANT: (\d+): /gm)].map(
    ([, number]) => Number(number) - 1,
  )
  const names = readdirSync(folder).sort((a, b) => numberOf(a) - numberOf(b))
  if (names.length !== changed.length)
    throw new Error(`${TOOL.name} wrote ${names.length} mutants and printed ${changed.length}`)
  const count = linesOf(source).length
  const mutants = new Map()
  for (const [index, name] of names.entries()) {
    const lines = linesOf(join(folder, name))
    const at = changed[index]
    const mutated = lines.slice(at, at + 1 + lines.length - count).join('\n')
    mutants.set(at, [...(mutants.get(at) ?? []), mutated])
  }
  rmSync(folder, { recursive: true })
  return mutants
}

/** `digits.mutant.17.cc` */
function numberOf(name) {
  return Number(name.split('.').at(-2))
}

function linesOf(path) {
  return readFileSync(path, 'utf8').split('\n')
}

function succeeds(command, args) {
  return spawnSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] }).status === 0
}
