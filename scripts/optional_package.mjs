/** Packages that are no dependencies: peers of measurements and proofs, taken from where the user has installed them. */
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/**
 * @param {string} folder whose node_modules, or a parent's, is looked into
 * @param {string} name of the package
 * @returns {Promise<object | undefined>} what it exports; undefined where it is not installed
 */
export async function importFrom(folder, name) {
  try {
    const path = createRequire(resolve(folder, 'package.json')).resolve(name)
    return (await import(pathToFileURL(path).href)).default
  } catch (error) {
    if (error.code === 'MODULE_NOT_FOUND') return undefined
    throw error
  }
}
