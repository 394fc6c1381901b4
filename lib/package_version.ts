/** The version of this package. The bundler puts the value in place of the import, so no file is read at run time. */
import manifest from '../package.json' with { type: 'json' }

export const PACKAGE_VERSION: string = manifest.version
