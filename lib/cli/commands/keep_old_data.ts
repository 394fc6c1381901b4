/** The option of all commands that may replace a model of several files. */
export const KEEP_OLD_DATA = [
  '--keep-old-data',
  'keep data files and shards that only the replaced file used (default: removed if tilework chose their names)',
] as const

export interface KeepOldData {
  readonly keepOldData?: boolean
}
