/**
 * Version 1: organizations, secrets, buffer, evidence, scans, published lists. 2: sources, bindings, read lines; chunks in the buffer.
 * 3: members, audit log, assessments, coverage, requested scans.
 */
export const SCHEMA_VERSION = 3

/** Writes what a version of the schema has that the one before had not. Inside a transaction of the caller; see Environment.migrate. */
export function migrateTo(version: number): void {
  switch (version) {
    case 1:
    case 2:
    case 3:
      // New tables, which are made when they are opened; what stands in the others is read as it is.
      return
    default:
      throw new Error(`no way to version ${version} of the schema`)
  }
}
