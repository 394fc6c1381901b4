/** Simpler ONNX models: passes, the rules that most of them are made of, and rules of users. */
export { type ChannelsLast, type ChannelsLastOptions, channelsLast } from './channels_last.js'
export {
  type OptimizeChange,
  type OptimizeOptions,
  type OptimizePass,
  optimize,
} from './optimize.js'
export {
  any,
  type ConstantPatternOptions,
  constant,
  type NodePatternOptions,
  node,
  type Pattern,
  type ValuePatternOptions,
} from './rewrite/pattern.js'
export type { RewriteNode, RewriteValue } from './rewrite/rewrite_graph.js'
export {
  type RewriteChange,
  type RewriteOptions,
  type Rule,
  type RuleAttribute,
  type RuleContext,
  type RuleOptions,
  rewrite,
  rule,
} from './rewrite/rules.js'
export { type TidyOptions, tidy } from './tidy.js'
