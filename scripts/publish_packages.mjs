/**
 * Publishes `packages/`, the platforms first, because the main package names them: `publish_packages.mjs --tag v1.2.3`. A
 * version that is there already is left as it is, so that a run that failed may be repeated. `--dry-run` only packs.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fail, ROOT } from './toolchain.mjs'

const { values } = parseArgs({ options: { tag: { type: 'string' }, 'dry-run': { type: 'boolean' } } })
const packages = join(ROOT, 'packages')
if (!existsSync(packages)) fail('packages/ does not exist; run "npm run packages" first.')
const platforms = readdirSync(join(packages, '@tilework')).map((name) => join(packages, '@tilework', name))
for (const folder of [...platforms, join(packages, 'tilework')]) publish(folder)

function publish(folder) {
  const { name, version, repository } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (repository === undefined) {
    fail(`${name} does not say where its code is: set TILEWORK_REPOSITORY and run "npm run packages" again.`)
  }
  if (values.tag !== undefined && values.tag !== `v${version}`) {
    fail(`The tag is ${values.tag}, and ${name} has version ${version}.`)
  }
  if (values['dry-run']) return npm(['pack', '--dry-run'], folder)
  const known = spawnSync('npm', ['view', `${name}@${version}`, 'version'], { encoding: 'utf8' })
  if (known.stdout?.trim() === version) return console.log(`${name}@${version} is published already`)
  npm(['publish', '--provenance', '--access', 'public'], folder)
}

function npm(args, cwd) {
  const { status } = spawnSync('npm', args, { cwd, stdio: 'inherit' })
  if (status !== 0) fail(`npm ${args.join(' ')} failed in ${cwd}.`)
}
