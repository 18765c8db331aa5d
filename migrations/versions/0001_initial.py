"""The schema of version 0.1.0: banks, access, sessions, turns, memories, models and events.

Until 0.1.0 is out this revision is edited in place; from then on no revision is.
"""

from hindsight.database import run_sql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("snapshots/0001/01_*.sql", "versions/0001_initial.sql", "snapshots/0001/02_*.sql")
    run_sql("snapshots/0001/0[3-9]_*.sql", "snapshots/0001/[12]*.sql", "versions/0001_policies.sql")


def downgrade() -> None:
    """Refuses while there are memories, unless told `alembic -x drop-memories=yes downgrade base`."""
    run_sql("versions/0001_downgrade.sql")
