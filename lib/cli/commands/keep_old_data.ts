/** The option of all commands that may replace a multi-file model. */
export const KEEP_OLD_DATA = [
  '--keep-old-data',
  'keep data files and shards that only the replaced file used (default: remove them if tilework chose their names)',
] as const

export interface KeepOldData {
  readonly keepOldData?: boolean
}
