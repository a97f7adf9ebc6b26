from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0001_initial")]

    operations = [
        migrations.AddIndex(
            model_name="message",
            index=models.Index(fields=["-created_at"], name="message_newest"),
        ),
    ]
