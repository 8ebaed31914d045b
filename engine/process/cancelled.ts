/**
 * The user ended a question with Ctrl-C or Ctrl-D. The program ends as by SIGINT; what it would
 * have done is not done.
 */
export class Cancelled extends Error {
  constructor() {
    super('cancelled')
    this.name = 'Cancelled'
  }
}
