"""UPDATE, DELETE, TRUNCATE and REPLACE of recorded rows are refused by the database itself."""

from django.db import migrations

from audit.append_only import protect, unprotect

TABLE = "audit_auditevent"


def forwards(apps, schema_editor):
    protect(schema_editor, TABLE)


def backwards(apps, schema_editor):
    unprotect(schema_editor, TABLE)


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]

    operations = [migrations.RunPython(forwards, backwards)]
