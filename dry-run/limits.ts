/*
 * Limits of the process that reads an uploaded file. The file is untrusted, so the process also
 * runs under the limits of its parent (console/try-file/limits.ts).
 */
const MIB = 1024 * 1024

/**
 * Decompressed bytes of a file: 64 MiB of gzip can contain 64 GiB. The report says that the rest
 * was not read.
 */
export const DECOMPRESSED_BYTES_MAX = 512 * MIB
/** Processor time in milliseconds. The report says that the rest was not read. */
export const READ_CPU_MS_MAX = 25_000
/** Bytes of the order that precedes the file, most of it registry changes. More is refused. */
export const ORDER_BYTES_MAX = 16 * MIB
/** Bytes of the report, as JSON. A process that writes more is killed. */
export const REPORT_BYTES_MAX = MIB
/** Platforms in the report, by number of matches. The others are counted. */
export const PLATFORMS_LISTED_MAX = 200
/** Names of each platform in the report, by number of matches. */
export const PLATFORM_NAMES_LISTED_MAX = 3
/** Distinct names of each platform that are counted. Further names count only as matches. */
export const PLATFORM_NAMES_MAX = 1000
/** Names of no platform in the report, by frequency. */
export const UNMATCHED_LISTED_MAX = 20
/** Distinct names of no platform that are counted. Further names are counted together. */
export const UNMATCHED_NAMES_MAX = 20_000
/** Reasons why messages were not understood in the report, by frequency. */
export const PROBLEMS_LISTED_MAX = 10
/** Distinct reasons that are counted. Messages of further reasons are counted by their outcome. */
export const PROBLEMS_MAX = 100
