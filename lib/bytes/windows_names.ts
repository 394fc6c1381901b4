/**
 * How Windows interprets paths. Pure functions of the text, so that they can be tested on every system; callers check
 * `isWindows` first.
 */

export const isWindows = process.platform === 'win32'

/** With any extension, also after blanks; the superscript digits count as 1, 2 and 3. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3]) *(?:\.|$)/i

/**
 * Whether Windows interprets a path segment as something other than a file of that name: a device, an alternate data stream
 * (`a.bin:b`), or the file without its trailing dots and spaces.
 */
export function isForbiddenOnWindows(name: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Windows refuses them
  return DEVICE.test(name) || /[. ]$/.test(name) || /[\u0000-\u001f<>:"|?*]/.test(name)
}

/** With `/` between folders, as patterns and manifests have it; a backslash is a separator too. */
export function withSlashes(path: string): string {
  return path.replaceAll('\\', '/')
}
