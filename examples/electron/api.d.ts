/** What the page gets from the preload script. */
export interface Inspection {
  readonly path: string
  readonly format: string
  readonly tensors: readonly {
    name: string
    dtype: string
    shape: readonly number[]
    first: readonly string[]
  }[]
}

declare global {
  interface Window {
    readonly tensorFiles: {
      /** Lets the user choose a file; undefined where none was chosen. */
      inspect(): Promise<Inspection | undefined>
    }
  }
}
