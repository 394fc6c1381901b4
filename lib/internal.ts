/** What the command line needs beside the public names: reading its arguments and printing. Not an entry of the package. */
export { unknownLayoutNote } from './layout/unknown_layout.js'
export { nearestNames } from './nearest_names.js'
export { checkConvertOptions } from './pipeline/convert.js'
export { type MatchOptions, matchFiles } from './pipeline/many/match_files.js'
export { type PathListOptions, readPathList } from './pipeline/many/path_list.js'
export { isPattern } from './pipeline/many/pattern.js'
export { type SchedulerShardOptions, schedulerShard } from './pipeline/many/scheduler_shard.js'
export { summarizeTensor } from './pipeline/tensor_summary.js'
