/**
 * Checks a macOS binary that is to be shipped, without tools of macOS: size, libraries, exports, lowest version, signature,
 * and no private functions. Fields are those of <mach-o/loader.h> and <mach-o/nlist.h>.
 */
import { readFileSync } from 'node:fs'
import { checkShipped, zeroTerminated } from './check_shipped.mjs'
import { hasValidSignature, loadCommands } from './sign_macho.mjs'

const LIBRARIES = /^\/usr\/lib\/libSystem\.B\.dylib$/

const SYMTAB = 0x02
const LOAD_DYLIB = 0x0c
const BUILD_VERSION = 0x32

/** Functions of the system without a declaration in its headers, which app stores refuse. */
const PRIVATE = /^___ulock_/

/** The linker's own names for the start of the library, with as many underscores as it likes. */
const BY_LINKER = /^_*(dso_handle|mh_dylib_header)$/

/**
 * Ends this process where the binary may not be shipped.
 *
 * @param {string} path
 * @param {string} maxVersion - of macOS, which users have at least
 * @returns {string} what was found
 */
export function checkMachO(path, maxVersion) {
  const bytes = readFileSync(path)
  const commands = loadCommands(bytes)
  const libraries = commands
    .filter(({ kind }) => kind === LOAD_DYLIB)
    .map(({ at }) => zeroTerminated(bytes, at + bytes.readUInt32LE(at + 8)))
  const symbols = symbolsOf(bytes, commands.find(({ kind }) => kind === SYMTAB).at)
  // A weak definition may be replaced by that of another library; operators new and delete are such.
  const exported = symbols
    .filter(({ name, isDefined, isWeak }) => isDefined && !isWeak && !BY_LINKER.test(name))
    .map(({ name }) => name.slice(1))
  const { kib, refuse } = checkShipped(path, { libraries, known: LIBRARIES, exported })
  const version = versionOf(bytes, commands)
  if (version !== maxVersion) refuse(`it needs macOS ${version}; expected ${maxVersion}`)
  if (!hasValidSignature(bytes)) refuse('it is not signed, or was changed afterwards')
  const imported = symbols.filter(({ isDefined }) => !isDefined).map(({ name }) => name)
  const hidden = imported.filter((name) => PRIVATE.test(name))
  if (hidden.length > 0) refuse(`it uses private functions: ${hidden.join(', ')}`)
  const nodeApi = imported.filter((name) => /^_(napi|node_api)_/.test(name))
  return [
    kib,
    `macOS ${version}`,
    'signed ad hoc',
    `needs ${libraries.join(' ')}`,
    `${nodeApi.length} functions of Node-API and ${imported.length - nodeApi.length} others`,
  ].join(', ')
}

function versionOf(bytes, commands) {
  const found = commands.find(({ kind }) => kind === BUILD_VERSION)
  const version = found === undefined ? 0 : bytes.readUInt32LE(found.at + 12)
  return `${version >> 16}.${(version >> 8) & 0xff}`
}

/** The external symbols. */
function symbolsOf(bytes, command) {
  const table = bytes.readUInt32LE(command + 8)
  const strings = bytes.readUInt32LE(command + 16)
  const symbols = Array.from({ length: bytes.readUInt32LE(command + 12) }, (_, index) => {
    const at = table + 16 * index
    const type = bytes[at + 4]
    return {
      name: zeroTerminated(bytes, strings + bytes.readUInt32LE(at)),
      isExternal: (type & 0x01) !== 0 && (type & 0xe0) === 0 && (type & 0x10) === 0,
      isDefined: (type & 0x0e) !== 0,
      isWeak: (bytes.readUInt16LE(at + 6) & 0x80) !== 0,
    }
  })
  return symbols.filter(({ isExternal }) => isExternal)
}
