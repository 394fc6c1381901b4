/**
 * Time from the start of a Node process to the end of an import of tilework, compared with an empty process, the command's
 * `--version`, and an import of sharp where `--modules` names a folder that has it.
 */
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ENTRIES } from '../scripts/entries.mjs'
import { bestOfRounds, report } from './rounds.mjs'

const DIST = fileURLToPath(new URL('../dist', import.meta.url))

export function addStartup(program) {
  program
    .command('startup')
    .description('start of a process that imports tilework, compared with an empty one and with sharp')
    .option('--modules <folder>', 'folder whose node_modules has sharp')
    .option('--rounds <n>', 'number of rounds; the best counts', Number, 40)
    .option('--json', 'print JSON')
    .action(measure)
}

async function measure({ modules, rounds, json }) {
  const candidates = { 'node -e 0': ['-e', '0'] }
  for (const entry of ENTRIES) {
    candidates[`import ${entry === 'index' ? 'tilework' : `tilework/${entry}`}`] = importOf(
      join(DIST, `${entry}.js`),
    )
  }
  candidates['tilework --version'] = [join(DIST, 'cli', 'main.js'), '--version']
  candidates['tilework --help'] = [join(DIST, 'cli', 'main.js'), '--help']
  const sharp = sharpIn(resolve(modules ?? '.'))
  if (sharp) candidates['import sharp'] = importOf(sharp)
  const runs = Object.entries(candidates).map(([name, args]) => [
    name,
    () => void execFileSync(process.execPath, args, { stdio: 'ignore' }),
  ])
  const best = await bestOfRounds(Object.fromEntries(runs), rounds)
  const bare = best['node -e 0']
  const rows = Object.entries(best).map(([name, seconds]) => ({
    process: name,
    ms: (seconds * 1000).toFixed(1),
    'ms above bare': ((seconds - bare) * 1000).toFixed(1),
    'relative to bare': (seconds / bare).toFixed(2),
  }))
  report(rows, { json })
}

function sharpIn(folder) {
  try {
    return createRequire(join(folder, 'package.json')).resolve('sharp')
  } catch {
    return undefined
  }
}

function importOf(path) {
  return ['--input-type=module', '-e', `import ${JSON.stringify(pathToFileURL(path).href)}`]
}
