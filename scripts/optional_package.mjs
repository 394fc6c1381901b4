/** Loads packages that are not dependencies, for comparisons, from a folder where the user has installed them. */
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/**
 * @param {string} folder - resolution starts here, as for an import of a file in this folder
 * @param {string} name - of the package
 * @returns {Promise<object | undefined>} its default export; undefined where it is not installed
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
