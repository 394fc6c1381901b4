/** Types for the part of picomatch that `pattern.ts` uses; the package has no types. */
declare module 'picomatch' {
  interface PicomatchOptions {
    readonly posix?: boolean
  }
  function picomatch(pattern: string, options?: PicomatchOptions): (name: string) => boolean
  namespace picomatch {
    function scan(pattern: string, options: { readonly parts: true }): { readonly parts?: readonly string[] }
  }
  export default picomatch
}
